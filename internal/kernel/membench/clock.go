// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"time"
	_ "unsafe" // for go:linkname

	"homenode/internal/unit"
)

// nanotime is CLOCK_MONOTONIC through the vDSO. time.Since would do, except that its
// prologue is a point where the scheduler takes the thread away every 10 ms (see
// loop.go).
//
//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64

type monotonic struct{}

// Monotonic is the machine's own clock.
func Monotonic() Clock { return monotonic{} }

//go:nosplit
func (monotonic) Now(int) time.Duration { return time.Duration(nanotime()) }
func (monotonic) Name() string          { return "monotonic clock" }
func (monotonic) How() unit.Source      { return unit.HowMeasured }

// Staged is a clock that needs to know when something is measured. The lab's clock
// stops its model while buffers are made, so that takes no model time.
type Staged interface {
	Clock
	Prepare() error // what follows is not measured
	Measure() error // what follows is
	// Work is Now without the kernel-mode time of the CPU: latencies are timed by it. On
	// hardware ticks are a thousandth of the time; in the lab, whose CPUs run at 50 MHz,
	// the kernel has some 4 %.
	Work(cpu int) time.Duration
}

// working is a clock for loops.
type working struct{ staged Staged }

//go:nosplit
func (w working) Now(cpu int) time.Duration { return w.staged.Work(cpu) }
func (w working) Name() string              { return w.staged.Name() }
func (w working) How() unit.Source          { return w.staged.How() }

func loopClock(c Clock) Clock {
	if s, ok := c.(Staged); ok {
		return working{s}
	}
	return c
}

// stage calls step on a staged clock.
func stage(c Clock, step func(Staged) error) error {
	if s, ok := c.(Staged); ok {
		return step(s)
	}
	return nil
}
