// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"syscall"
	"time"
)

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0 // only a bad argument can fail, and there is none
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
