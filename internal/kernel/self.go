// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// ForgetProgram releases those pages of this program's own file that are not in use.
func ForgetProgram() error { return unix.ForgetProgram() }

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() time.Duration { return unix.ProcessCPU() }

// Monotonic is CLOCK_MONOTONIC, which systemd needs for a reload.
func Monotonic() time.Duration {
	var t sys.Timespec
	if err := sys.ClockGettime(sys.CLOCK_MONOTONIC, &t); err != nil {
		return 0 // only a bad argument can fail, and there is none
	}
	return time.Duration(t.Nano())
}
