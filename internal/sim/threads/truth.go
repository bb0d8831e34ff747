// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"slices"

	"homenode/internal/sim"
)

// Truth is what workloads got since the last call, in the order of their IDs. Of a
// closed loop, Latency is the seconds that an operation takes, and P99 the 99th
// percentile of them over threads and steps.
func (w *World) Truth() []sim.Truth {
	all := make([]sim.Truth, 0, len(w.live))
	for _, wl := range w.all {
		if wl.came && (wl.here() || wl.truth.seconds > 0) {
			all = append(all, wl.tell())
		}
	}
	w.all = slices.DeleteFunc(w.all, func(wl *workload) bool { return wl.gone && wl.win.seconds == 0 })
	return all
}

func (wl *workload) tell() sim.Truth {
	c := &wl.truth
	t := sim.Truth{
		Workload: wl.ID, Service: wl.service, Seconds: c.seconds, Asked: c.asked, Ops: c.ops, Dropped: c.dropped,
		CPUSeconds: c.cpu, Cycles: c.cycles, Instructions: c.instructions, Local: c.local, Remote: c.remote,
		Stalled: c.stalled, BoundSeconds: c.bound, Refused: wl.owed.Bytes(),
	}
	if t.P99 = wl.requests.P99(); wl.demand.Closed {
		if c.ops > 0 { // else all of it is the next one's, as its latency is
			wl.tail.unfinished(wl.threads)
		}
		t.P99 = wl.tail.p99()
	}
	unfinished := c.latency
	if c.ops > 0 {
		t.Latency, unfinished = c.latency/c.ops, 0
	}
	wl.truth = counts{latency: unfinished}
	clear(wl.tail.bins)
	return t
}

// ThreadTruth is what one thread got since the start: what no policy sees.
type ThreadTruth struct {
	Workload   string
	ID         int
	CPUSeconds float64
	Ops        float64
	Moves      int // from node to node
}

// Threads are all threads that are there, in the order of their IDs.
func (w *World) Threads() []ThreadTruth {
	all := make([]ThreadTruth, 0, len(w.ids))
	for _, t := range w.ids {
		if t.wl.here() {
			all = append(all, ThreadTruth{Workload: t.wl.ID, ID: t.id, CPUSeconds: t.cpuSeconds, Ops: t.ops, Moves: t.moves})
		}
	}
	return all
}
