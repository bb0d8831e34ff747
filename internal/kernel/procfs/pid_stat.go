// SPDX-License-Identifier: Apache-2.0

package procfs

import "bytes"

// TaskStat is the part of /proc/PID/stat or /proc/PID/task/TID/stat we use.
type TaskStat struct {
	Ticks  uint64 // utime + stime, in ticks of USER_HZ
	Start  uint64 // ticks after boot; with the pid it identifies a process
	CPU    int    // the CPU it last ran on
	Parent int    // process id; 0 where the parent is outside the PID namespace
	Flags  uint64 // PF_… of include/linux/sched.h
	State  byte   // 'R', 'S', … 'Z' is a zombie
}

// KernelThread says that it has no memory of its own (PF_KTHREAD).
func (s TaskStat) KernelThread() bool { return s.Flags&0x00200000 != 0 }

// TaskName is the name in /proc/PID/stat: the text between the first and the last
// parenthesis.
func TaskName(data []byte) string {
	from, to := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if from < 0 || to <= from {
		return ""
	}
	return string(data[from+1 : to])
}

// ParseTaskStat reads /proc/PID/task/TID/stat (field 39, processor, since 2.2.8):
//
//	1234 (a (b) c) S 1 1234 1234 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 1 0 99 … 2 …
//
// The name may hold blanks and parentheses: fields count from the last ')'.
func ParseTaskStat(data []byte) (TaskStat, error) {
	const state, parent, flags, utime, stime, start, processor = 3, 4, 9, 14, 15, 22, 39
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return TaskStat{}, malformed("/proc/PID/stat", 1, data, errShort)
	}
	var got [processor + 1]uint64
	var letter byte
	rest := bytes.TrimRight(data[i+1:], "\n")
	for f := state; f <= processor; f++ {
		var field []byte
		if field, rest = nextField(rest); len(field) == 0 {
			return TaskStat{}, malformed("/proc/PID/stat", 1, data, errShort)
		}
		if f == state {
			letter = field[0]
		}
		if f == parent || f == flags || f == utime || f == stime || f == start || f == processor {
			v, err := number(field)
			if err != nil {
				return TaskStat{}, malformed("/proc/PID/stat", 1, field, err)
			}
			got[f] = v
		}
	}
	return TaskStat{Ticks: got[utime] + got[stime], Start: got[start], CPU: int(got[processor]), Parent: int(got[parent]), Flags: got[flags], State: letter}, nil
}
