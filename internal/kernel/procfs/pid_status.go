// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// TaskStatus is the part of /proc/PID/status, or of a thread's, that we use.
type TaskStatus struct {
	CPUs set.CPUSet
	Mems set.NodeSet
	UID  unit.Opt[int] // effective
	Real unit.Opt[int] // user, which started it
	// Process is the process of a thread: itself if it is the first.
	Process unit.Opt[int]
	// Caps are the effective capabilities, a bit each: CapNice, CapPtrace.
	Caps unit.Opt[uint64]
	Swap unit.Opt[unit.Bytes]
}

// Capabilities needed to act on other processes, from include/uapi/linux/capability.h.
const (
	CapPtrace = 1 << 19
	CapNice   = 1 << 23
)

// ParseTaskStatus reads /proc/PID/status (Cpus_allowed_list and
// Mems_allowed_list since 2.6.26, VmSwap since 2.6.34, none of a kernel thread):
//
//	Tgid:	1234
//	Uid:	0	0	0	0
//	CapEff:	000001ffffffffff
//	VmSwap:	       0 kB
//	Cpus_allowed_list:	0-3
//	Mems_allowed_list:	0-1
func ParseTaskStatus(data []byte) (TaskStatus, error) {
	var s TaskStatus
	for n, line := range lines(data) {
		key, rest := nextField(line)
		var err error
		switch string(key) {
		case "Cpus_allowed_list:":
			s.CPUs, err = set.ParseCPUs(string(rest))
		case "Mems_allowed_list:":
			s.Mems, err = set.ParseNodes(string(rest))
		case "Tgid:":
			var pid uint64
			pid, err = number(bytes.TrimSpace(rest))
			s.Process = unit.OptOf(int(pid), err == nil)
		case "CapEff:":
			var caps uint64
			caps, err = hex(bytes.TrimSpace(rest))
			s.Caps = unit.OptOf(caps, err == nil)
		case "VmSwap:":
			var b unit.Bytes
			b, err = kibibytes(rest)
			s.Swap = unit.OptOf(b, err == nil)
		case "Uid:":
			s.Real, s.UID, err = userIDs(rest)
		}
		if err != nil {
			return TaskStatus{}, malformed("/proc/PID/status", n, line, err)
		}
	}
	return s, nil
}

// userIDs reads "0	1000	0	0": the real and the effective user.
func userIDs(text []byte) (realID, effective unit.Opt[int], err error) {
	a, rest := nextField(text)
	b, _ := nextField(rest)
	first, err1 := number(a)
	second, err2 := number(b)
	return unit.OptOf(int(first), err1 == nil), unit.OptOf(int(second), err2 == nil), errors.Join(err1, err2)
}

// ParseStatm reads the resident pages of /proc/PID/statm (since 2.0), the second
// of its seven fields:
//
//	1234 560 400 10 0 200 0
func ParseStatm(data []byte) (uint64, error) {
	_, rest := nextField(data)
	f, _ := nextField(rest)
	n, err := number(f)
	if err != nil {
		return 0, malformed("/proc/PID/statm", 1, bytes.TrimSpace(data), err)
	}
	return n, nil
}
