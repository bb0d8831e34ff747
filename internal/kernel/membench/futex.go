// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"math"
	"sync/atomic"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// From include/uapi/linux/futex.h.
const (
	futexWait = 0 | 128 // FUTEX_WAIT | FUTEX_PRIVATE_FLAG
	futexWake = 1 | 128
)

// futex is a word that threads sleep on. A channel would wake a goroutine, and through
// it its locked thread, by a third thread; this wakes the thread itself.
type futex struct{ v atomic.Uint32 }

// await sleeps until the word is no longer old.
func (f *futex) await(old uint32) {
	for f.v.Load() == old {
		// EAGAIN and EINTR: look again
		sys.Syscall6(sys.SYS_FUTEX, uintptr(unsafe.Pointer(&f.v)), futexWait, uintptr(old), 0, 0, 0)
	}
}

// set changes the word and wakes all threads.
func (f *futex) set(v uint32) {
	f.v.Store(v)
	sys.Syscall6(sys.SYS_FUTEX, uintptr(unsafe.Pointer(&f.v)), futexWake, math.MaxInt32, 0, 0, 0)
}
