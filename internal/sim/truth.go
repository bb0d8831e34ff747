// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"homenode/internal/unit"
)

// Truth is what one workload got in a stretch of time.
type Truth struct {
	Workload, Service string
	Seconds           float64 // that it was there
	Asked, Ops        float64 // operations asked for, done
	Dropped           float64
	CPUSeconds        float64
	Cycles            float64
	Instructions      float64
	Local, Remote     float64 // DRAM reads
	// Latency is of a request, seconds, the mean over all that were done: waiting and
	// service. P99 is of all of them, too. Both are 0 without requests.
	Latency, P99 float64
	Stalled      float64 // seconds in which it stood still for a move
	BoundSeconds float64 // in which its cpuset was narrower than the machine
	// Refused is the memory that it should have by now and was given by no node.
	Refused unit.Bytes
}

// Truth is what workloads got since the last call, in the order of their IDs: what
// no policy sees.
func (w *World) Truth() []Truth {
	all := make([]Truth, 0, len(w.live))
	for _, wl := range w.all {
		if wl.came && (wl.here() || wl.truth.seconds > 0) {
			all = append(all, wl.tell())
			wl.truth, wl.tail.filled = counts{latency: unfinished(&wl.truth)}, 0
		}
	}
	w.all = slices.DeleteFunc(w.all, func(wl *workload) bool { return wl.gone && wl.win.seconds == 0 })
	return all
}

// unfinished is what goes on to the next stretch: time that requests waited of which none
// was done.
func unfinished(c *counts) float64 {
	if c.ops > 0 {
		return 0
	}
	return c.latency
}

func (wl *workload) tell() Truth {
	c := &wl.truth
	t := Truth{
		Workload: wl.ID, Service: wl.service, Seconds: c.seconds, Asked: c.asked, Ops: c.ops, Dropped: c.dropped,
		CPUSeconds: c.cpu, Cycles: c.cycles, Instructions: c.instructions, Local: c.local, Remote: c.remote,
		P99: wl.tail.p99(), Stalled: c.stalled, BoundSeconds: c.bound, Refused: wl.owed.Bytes(),
	}
	if c.ops > 0 {
		t.Latency = c.latency / c.ops
	}
	return t
}
