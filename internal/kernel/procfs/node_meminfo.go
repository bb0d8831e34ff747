// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"

	"homenode/internal/unit"
)

// NodeMeminfo is the memory of one node. Some figures include others
// (drivers/base/node.c and the code that changes the counters):
//
//   - File (FilePages) includes Shmem and SwapCached; a page of the swap cache that
//     is mapped is in Anon too.
//   - Anon (AnonPages) includes AnonHuge, Shmem includes ShmemHuge.
//   - Slab is SlabReclaimable + SUnreclaim.
//   - HugePages_* count pages of the default size only, and are not in kB: numastat
//     -m shows both wrongly (numactl#115, #152). nodeN/hugepages has all sizes; without
//     it, HugeTotal only shows whether there are any.
type NodeMeminfo struct {
	Total, Free, File, Anon                  Bytes
	Shmem, Slab, SlabReclaimable, SwapCached Bytes
	KernelStack, PageTables, SecPageTables   Bytes
	AnonHuge, ShmemHuge, Dirty, Mapped       Bytes
	HugeTotal                                Count // pages
}

// Bytes is an amount that the kernel may not show.
type Bytes = unit.Opt[unit.Bytes]

// ParseNodeMeminfo reads /sys/devices/system/node/nodeN/meminfo (since 2.6.0;
// FilePages and AnonPages since 2.6.18, SwapCached since 5.12, SecPageTables
// since 6.1), in KiB:
//
//	Node 0 MemTotal:        4417748 kB
//	Node 0 FilePages:         66620 kB
func ParseNodeMeminfo(data []byte) (NodeMeminfo, error) {
	var m NodeMeminfo
	for n, line := range lines(data) {
		_, rest := nextField(line)
		_, rest = nextField(rest)
		key, rest := nextField(rest)
		if string(key) == "HugePages_Total:" {
			pages, err := number(bytes.TrimSpace(rest))
			if err != nil {
				return NodeMeminfo{}, malformed("node/meminfo", n, line, err)
			}
			m.HugeTotal = unit.Some(pages)
		}
		into := m.field(key)
		if into == nil {
			continue
		}
		b, err := kibibytes(rest)
		if err != nil {
			return NodeMeminfo{}, malformed("node/meminfo", n, line, err)
		}
		*into = unit.Some(b)
	}
	return m, nil
}

// kibibytes reads "66620 kB".
func kibibytes(text []byte) (unit.Bytes, error) {
	f, rest := nextField(text)
	kib, err := number(f)
	if err != nil || kib > 1<<50 || string(bytes.TrimSpace(rest)) != "kB" {
		return 0, errNumber
	}
	return unit.Bytes(kib) * unit.KiB, nil
}

func (m *NodeMeminfo) field(key []byte) *Bytes {
	switch string(key) {
	case "MemTotal:":
		return &m.Total
	case "MemFree:":
		return &m.Free
	case "FilePages:":
		return &m.File
	case "AnonPages:":
		return &m.Anon
	case "Shmem:":
		return &m.Shmem
	case "Slab:":
		return &m.Slab
	case "SReclaimable:":
		return &m.SlabReclaimable
	case "SwapCached:":
		return &m.SwapCached
	case "KernelStack:":
		return &m.KernelStack
	case "PageTables:":
		return &m.PageTables
	case "SecPageTables:":
		return &m.SecPageTables
	case "AnonHugePages:":
		return &m.AnonHuge
	case "ShmemHugePages:":
		return &m.ShmemHuge
	case "Dirty:":
		return &m.Dirty
	case "Mapped:":
		return &m.Mapped
	}
	return nil
}
