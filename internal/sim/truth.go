// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"homenode/internal/unit"
)

// Truth is what one workload got over some time. No policy sees it.
type Truth struct {
	Workload, Service string
	Seconds           float64 // for which it was present
	Asked, Ops        float64 // operations requested, done
	Dropped           float64
	CPUSeconds        float64
	Cycles            float64
	Instructions      float64
	Local, Remote     float64 // DRAM reads
	// Latency is the mean over all requests done, in seconds: waiting and service. P99 is
	// the 99th percentile. Both are 0 without requests. Single threads have them for closed
	// loops too, per operation.
	Latency, P99 float64
	Stalled      float64 // seconds that it stood still for a move
	BoundSeconds float64 // seconds in which its cpuset was narrower than the machine
	// Refused is memory that it requested and that no node had.
	Refused unit.Bytes
}

// Truth returns what workloads got since the last call, in the order of their IDs.
func (w *World) Truth() []Truth {
	all := make([]Truth, 0, len(w.live))
	for _, wl := range w.all {
		if wl.came && (wl.Here() || wl.Got.Seconds > 0) {
			all = append(all, w.truthOf(wl))
		}
	}
	w.all = slices.DeleteFunc(w.all, func(wl *Workload) bool { return wl.gone && wl.Win.Seconds == 0 })
	return all
}

// truthOf returns the truth of one workload, and starts anew. Time that requests waited
// while none was done is carried over.
func (w *World) truthOf(wl *Workload) Truth {
	c := &wl.Got
	t := Truth{
		Workload: wl.ID, Service: wl.service, Seconds: c.Seconds, Asked: c.Asked, Ops: c.Ops, Dropped: c.Dropped,
		CPUSeconds: c.CPU, Cycles: c.Cycles, Instructions: c.Instructions, Local: c.Local, Remote: c.Remote,
		P99: wl.p99(), Stalled: c.Stalled, BoundSeconds: c.Bound, Refused: wl.Owed.Bytes(),
	}
	if wl.Demand.Closed {
		t.P99 = w.population.P99(wl)
	}
	unfinished := c.Latency
	if c.Ops > 0 {
		t.Latency, unfinished = c.Latency/c.Ops, 0
	}
	wl.Got = Counts{Latency: unfinished}
	return t
}
