// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"math"

	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Window is what happened since the last one, as a kernel would tell it, thread by
// thread: counters are deltas, figures are modelled. Outcomes are those of Apply since.
func (w *World) Window() window.Window {
	w.endMoves()
	w.seq++
	length := w.now - w.since
	out := window.Window{
		Schema: window.Schema, Seq: w.seq, At: w.c.Start.Add(w.now).UTC(), Length: length,
		Nodes: make([]window.Node, len(w.nodes)), Outcomes: w.outcomes, Problems: w.problems(),
	}
	w.since, w.outcomes = w.now, nil
	rows := sim.NewRows(&out, len(w.live))
	for _, wl := range w.all {
		if wl.here() {
			w.tellWorkload(rows.Next(), wl, sim.Reading{Seconds: length.Seconds(), Seen: wl.seen})
		}
		clear(wl.byCPU)
		wl.win.seconds, wl.seen = 0, wl.here()
	}
	sim.TellNodes(&out, w.c.Machine.Nodes, &w.host, w.busy)
	return out
}

func (w *World) tellWorkload(x *window.Workload, wl *workload, r sim.Reading) {
	x.ID, x.Service, x.Owner = wl.ID, wl.service, wl.Owner
	wl.spec.Tell(x)
	if s := wl.spec.Sensitive; s != nil {
		x.Sensitive = unit.Some(*s)
	}
	for n := range w.nodes {
		x.CPUByNode[n] = r.Rate(wl.byCPU[n])
		x.AnonByNode[n] = unit.Modelled(linux.BytesOf(w.anonOn(wl, n)), sim.Simulator)
		x.FileByNode[n] = unit.Modelled(linux.BytesOf(wl.group.Memory.Mapped[n]+wl.group.Memory.Cache[n]), sim.Simulator)
	}
	x.CPU = r.Rate(sum(wl.byCPU))
	c := &wl.win
	x.Cycles, x.Instructions, x.StallCycles = r.Count(&c.cycles), r.Count(&c.instructions), r.Count(&c.stall)
	x.LocalLoads, x.RemoteLoads = r.Count(&c.local), r.Count(&c.remote)
	x.UncoreRequests, x.UncoreWaits = r.Count(&c.requests), r.Count(&c.waits)
	x.LLC = unit.Modelled(unit.Bytes(math.Round(wl.llc)), sim.Simulator)
	wl.Tell(&x.Binding)
	x.Threads = w.tellThreads(wl, r)
}

// tellThreads is one by one.
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
	pages := wl.group.Memory.Shared[node]
	for i := range wl.threads {
		pages += wl.threads[i].private[node]
	}
	return pages
}
