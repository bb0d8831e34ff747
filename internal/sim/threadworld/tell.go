// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"

	"homenode/internal/sim"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Tell adds what is known of single threads, and the uncore's counters.
func (w *World) Tell(x *sim.Workload, out *window.Workload, r sim.Reading) {
	wl := w.of[x]
	if s := wl.Spec.Sensitive; s != nil {
		out.Sensitive = unit.Some(*s)
	}
	for n := range w.nodes {
		out.AnonByNode[n] = sim.Pages(w.anonOn(wl, n))
	}
	out.UncoreRequests, out.UncoreWaits = r.Count(&wl.Win.Requests), r.Count(&wl.Win.Waits)
	out.LLC = unit.Modelled(unit.Bytes(math.Round(wl.llc)), sim.Simulator)
	out.Threads = w.tellThreads(wl, r)
}

func (w *World) tellThreads(wl *workload, r sim.Reading) []window.Thread {
	all := make([]window.Thread, len(wl.threads))
	for i := range wl.threads {
		t, x := &wl.threads[i], &all[i]
		c := &t.win
		x.ID, x.CPU = t.id, unit.Some(w.cpus[t.cpu].id)
		x.Used = r.Rate(min(c.cpu, r.Seconds))
		x.Cycles, x.Instructions = r.Count(&c.cycles), r.Count(&c.instructions)
		x.UncoreRequests, x.UncoreWaits = r.Count(&c.requests), r.Count(&c.waits)
		x.Allowed, x.Ours = t.allowed(), t.ours
		x.Pinned = !t.ours && t.pinned && x.Allowed != wl.CPUs
		c.cpu = 0
	}
	return all
}

func (w *World) anonOn(wl *workload, node int) float64 {
	pages := wl.Group.Memory.Shared[node]
	for i := range wl.threads {
		pages += wl.threads[i].private[node]
	}
	return pages
}

// Window ends the window's moves: the loads of the memory system have changed.
func (w *World) Window() window.Window {
	w.changed = w.changed || w.Moving()
	return w.World.Window()
}

// P99 is over threads and steps. An operation that has not ended counts, too. If none has
// ended, everything is carried over to the next call, as with latency.
func (w *World) P99(x *sim.Workload) float64 {
	wl := w.of[x]
	if wl.Got.Ops > 0 {
		wl.tail.unfinished(wl.threads)
	}
	p := wl.tail.p99()
	clear(wl.tail.bins)
	return p
}

// ThreadTruth is what one thread got since the start. No policy sees it.
type ThreadTruth struct {
	Workload   string
	ID         int
	CPUSeconds float64
	Ops        float64
	Moves      int // between nodes
}

// Threads are all present threads, in the order of their IDs.
func (w *World) Threads() []ThreadTruth {
	all := make([]ThreadTruth, 0, len(w.ids))
	for _, t := range w.ids {
		if t.wl.Here() {
			all = append(all, ThreadTruth{Workload: t.wl.ID, ID: t.id, CPUSeconds: t.cpuSeconds, Ops: t.ops, Moves: t.moves})
		}
	}
	return all
}
