// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"runtime"
	"time"
	"unsafe"
)

// owner is the thread that dirties the lines of a transfer.
//
//	reader  asked = n ──▶        ┌── chases, timed ──▶ asked = n+1
//	owner           stores lap n ─▶ given = n
//
// Each waits while the other works, and sleeps only if that takes long. Each word is written by
// one side only.
type owner struct {
	run          *run
	cpu          int
	base         unsafe.Pointer
	lines        int
	asked, given futex
	err          error
}

// noMore is the lap that ends it; 4 thousand million laps are never reached.
const noMore = ^uint32(0)

func newOwner(r *run, cpu int, s *source) *owner {
	return &owner{run: r, cpu: cpu, base: s.base, lines: s.lines}
}

func (o *owner) main() {
	defer o.run.done.Done()
	runtime.LockOSThread()
	if o.err = pin(o.cpu); o.err != nil {
		o.run.stop.Store(true)
	}
	o.run.ready.Done()
	defer holdSignals()()
	for lap := uint32(1); ; lap++ {
		o.asked.catch(lap - 1)
		if o.asked.v.Load() == noMore {
			return
		}
		writeLines(o.base, o.lines, uint64(lap))
		o.given.pass(lap)
	}
}

func (o *owner) quit() { o.asked.pass(noMore) }

// transfer is a lap: the owner's part of it, then the chase over all lines.
func (w *worker) transfer() (ops uint64, took, now time.Duration) {
	w.lap++
	w.owner.asked.pass(w.lap)
	w.owner.given.catch(w.lap - 1)
	began := w.clock.Now(w.thread.CPU)
	w.source.do(w.source.lines)
	now = w.clock.Now(w.thread.CPU)
	return uint64(w.source.lines), now - began, now
}
