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
type futex struct {
	v      atomic.Uint32
	asleep atomic.Int32 // of those in catch
}

// await sleeps until the word is no longer old.
func (f *futex) await(old uint32) {
	for f.v.Load() == old {
		// EAGAIN and EINTR: look again
		sys.Syscall6(sys.SYS_FUTEX, uintptr(unsafe.Pointer(&f.v)), futexWait, uintptr(old), 0, 0, 0)
	}
}

const (
	looks    = 10_000 // some tenths of a millisecond on hardware, 20 ms in the lab: longer than a lap
	lookTurn = 50     // of spin, between two looks
)

// catch waits as await does, but looks for a while before it sleeps: on its way to sleep and back
// the kernel pushes lines out of the caches, among them those of a transfer.
func (f *futex) catch(old uint32) {
	for range looks {
		if f.v.Load() != old {
			return
		}
		spin(lookTurn)
	}
	f.asleep.Add(1)
	f.await(old)
	f.asleep.Add(-1)
}

// pass changes the word for threads in catch. The kernel runs only if one of them sleeps.
func (f *futex) pass(v uint32) {
	f.v.Store(v)
	if f.asleep.Load() > 0 {
		f.set(v)
	}
}

// set changes the word and wakes all threads.
func (f *futex) set(v uint32) {
	f.v.Store(v)
	sys.Syscall6(sys.SYS_FUTEX, uintptr(unsafe.Pointer(&f.v)), futexWake, math.MaxInt32, 0, 0, 0)
}
