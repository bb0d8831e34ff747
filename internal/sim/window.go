// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Window is what happened since the last one, as a kernel would tell it: counters
// are deltas, figures are modelled. Outcomes are those of Apply since.
func (w *World) Window() window.Window {
	w.endMoves()
	w.seq++
	length := w.now - w.since
	out := window.Window{
		Schema: window.Schema, Seq: w.seq, At: w.c.Start.Add(w.now).UTC(), Length: length,
		Nodes: make([]window.Node, len(w.places)), Outcomes: w.outcomes, Problems: w.problems(),
	}
	w.since, w.outcomes = w.now, nil
	rows := NewRows(&out, len(w.live))
	for _, wl := range w.all {
		if wl.here() {
			w.workload(rows.Next(), wl, Reading{Seconds: length.Seconds(), Seen: wl.seen})
		}
		clear(wl.byCPU)
		wl.win.seconds, wl.seen = 0, wl.here()
	}
	TellNodes(&out, w.c.Machine.Nodes, &w.host, w.busy)
	return out
}

func (w *World) workload(x *window.Workload, wl *workload, r Reading) {
	x.ID, x.Service, x.Owner = wl.ID, wl.service, wl.Owner
	wl.spec.Tell(x)
	all := 0.0
	for n, used := range wl.byCPU {
		all += used
		x.CPUByNode[n] = r.Rate(used)
		x.AnonByNode[n] = unit.Modelled(linux.BytesOf(w.anonOn(&wl.group, n)), Simulator)
		x.FileByNode[n] = unit.Modelled(linux.BytesOf(wl.group.Memory.Mapped[n]+wl.group.Memory.Cache[n]), Simulator)
	}
	x.CPU = r.Rate(all)
	c := &wl.win
	x.Cycles, x.Instructions, x.StallCycles = r.Count(&c.cycles), r.Count(&c.instructions), r.Count(&c.stall)
	x.LocalLoads, x.RemoteLoads = r.Count(&c.local), r.Count(&c.remote)
	wl.Tell(&x.Binding)
	if w.c.Resctrl {
		wl.tellShared(x, r)
	}
}

func (w *World) anonOn(g *linux.Group, node int) float64 {
	n := len(w.places)
	pages := g.Memory.Shared[node]
	for t := range n {
		pages += g.Memory.Private[t*n+node]
	}
	return pages
}
