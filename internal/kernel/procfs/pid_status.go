// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// TaskStatus is the part of /proc/PID/status, or of a thread's, that we use.
type TaskStatus struct {
	CPUs set.CPUSet
	Mems set.NodeSet
	UID  unit.Opt[int] // effective
	Swap unit.Opt[unit.Bytes]
}

// ParseTaskStatus reads /proc/PID/status (Cpus_allowed_list and
// Mems_allowed_list since 2.6.26, VmSwap since 2.6.34, none of a kernel thread):
//
//	Uid:	0	0	0	0
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
		case "VmSwap:":
			var b unit.Bytes
			b, err = kibibytes(rest)
			s.Swap = unit.OptOf(b, err == nil)
		case "Uid:":
			_, rest = nextField(rest)
			f, _ := nextField(rest)
			var uid uint64
			uid, err = number(f)
			s.UID = unit.OptOf(int(uid), err == nil)
		}
		if err != nil {
			return TaskStatus{}, malformed("/proc/PID/status", n, line, err)
		}
	}
	return s, nil
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
