// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"

	"homenode/internal/unit"
)

// ParseMemoryLimit reads memory.max of v2 (since 4.2), in bytes or "max", and
// memory.limit_in_bytes of v1 (since 2.6.25), where no limit is the largest
// number of pages that fits 63 bits (PAGE_COUNTER_MAX in
// include/linux/page_counter.h). None is no limit.
//
//	536870912
//	max
//	9223372036854771712
func ParseMemoryLimit(data []byte) (unit.Opt[unit.Bytes], error) {
	const noLimitV1 = (1<<63 - 1) &^ (1<<16 - 1) // pages are at most 64 KiB
	text := bytes.TrimSpace(data)
	if string(text) == "max" {
		return unit.None[unit.Bytes](), nil
	}
	n, err := number(text)
	if err != nil {
		return unit.None[unit.Bytes](), malformed("memory.max", data, err)
	}
	return unit.OptOf(unit.Bytes(n), n < noLimitV1), nil
}

// ParseMemoryUsage reads memory.current of v2, memory.usage_in_bytes of v1: bytes.
func ParseMemoryUsage(data []byte) (unit.Bytes, error) {
	n, err := number(bytes.TrimSpace(data))
	if err != nil {
		return 0, malformed("memory.current", data, err)
	}
	return unit.Bytes(n), nil
}

// ParseOOMKills reads the number of processes of a cgroup that the out-of-memory killer
// ended, from memory.events of v2 or memory.oom_control of v1 (both since 4.13). v2
// counts the cgroups below as well.
//
//	oom 0
//	oom_kill 0
func ParseOOMKills(data []byte) (uint64, error) {
	n, err := value("memory.events", "oom_kill", data)
	return uint64(n), err
}

// ParseReclaimed reads the pages that reclaim took from a cgroup, from memory.stat
// of v2 (pgsteal, since 4.12). v1 has no such line.
//
//	pgscan 1200
//	pgsteal 1100
func ParseReclaimed(data []byte) (uint64, error) {
	n, err := value("memory.stat", "pgsteal", data)
	return uint64(n), err
}
