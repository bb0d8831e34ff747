// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"time"
)

// ParseSchedstat reads how long a thread was runnable and did not run, from
// /proc/PID/task/TID/schedstat (since 2.6.25, with CONFIG_SCHED_INFO): time on a CPU
// and time waiting for one, in nanoseconds, and the number of times it ran.
//
//	1183938 18217 12
//
// Without accounting the kernel prints "0 0 0".
func ParseSchedstat(data []byte) (waited time.Duration, err error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	_, rest := nextField(line)
	text, _ := nextField(rest)
	n, err := number(text)
	if err != nil {
		return 0, malformed("/proc/PID/task/TID/schedstat", 1, line, err)
	}
	return time.Duration(n), nil
}

// ParseRunTime reads how long a thread was on a CPU from the same line. For a thread
// that runs now, the time since the last tick or switch is missing.
func ParseRunTime(data []byte) (ran time.Duration, err error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	text, _ := nextField(line)
	n, err := number(text)
	if err != nil {
		return 0, malformed("/proc/PID/task/TID/schedstat", 1, line, err)
	}
	return time.Duration(n), nil
}
