// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"time"
)

// ParseSchedstat reads how long a thread was on a CPU, and how long it was runnable and
// did not run, from /proc/PID/task/TID/schedstat (since 2.6.25, with CONFIG_SCHED_INFO):
// time on a CPU and time waiting for one, in nanoseconds, and the number of times it ran.
//
//	1183938 18217 12
//
// Without accounting the kernel prints "0 0 0". For a thread that runs now, the time since
// the last tick or switch is missing.
func ParseSchedstat(data []byte) (ran, waited time.Duration, err error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	first, rest := nextField(line)
	second, _ := nextField(rest)
	a, err1 := number(first)
	b, err2 := number(second)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, malformed("/proc/PID/task/TID/schedstat", 1, line, err)
	}
	return time.Duration(a), time.Duration(b), nil
}
