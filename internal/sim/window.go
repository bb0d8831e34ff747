// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Window is what happened since the last one, as a kernel would report it: counters are
// deltas, figures are modelled. Outcomes are those of Apply since.
func (w *World) Window() window.Window {
	w.endMoves()
	w.seq++
	length := w.now - w.since
	out := window.Window{
		Schema: window.Schema, Seq: w.seq, At: w.Config.Start.Add(w.now).UTC(), Length: length,
		Nodes: make([]window.Node, len(w.Busy)), Outcomes: w.outcomes, Problems: w.problems(),
	}
	w.since, w.outcomes = w.now, nil
	rows := newRows(&out, len(w.live))
	for _, wl := range w.all {
		if wl.Here() {
			w.tell(rows.next(), wl, Reading{Seconds: length.Seconds(), Seen: wl.seen})
		}
		clear(wl.ByCPU)
		wl.Win.Seconds, wl.seen = 0, wl.Here()
	}
	w.tellNodes(&out)
	return out
}

// tell fills in one workload.
func (w *World) tell(x *window.Workload, wl *Workload, r Reading) {
	x.ID, x.Service, x.Owner = wl.ID, wl.service, wl.Owner
	wl.Spec.tell(x)
	for n, used := range wl.ByCPU {
		x.CPUByNode[n] = r.Rate(used)
		x.FileByNode[n] = Pages(wl.Group.Memory.Mapped[n] + wl.Group.Memory.Cache[n])
	}
	x.CPU = r.Rate(detmath.Sum(wl.ByCPU))
	c := &wl.Win
	x.Cycles, x.Instructions, x.StallCycles = r.Count(&c.Cycles), r.Count(&c.Instructions), r.Count(&c.Stall)
	x.LocalLoads, x.RemoteLoads = r.Count(&c.Local), r.Count(&c.Remote)
	wl.Cpuset.tell(&x.Binding)
	w.population.Tell(wl, x, r)
}

// Pages are reported as whole ones.
func Pages(pages float64) unit.Value[unit.Bytes] {
	return unit.Modelled(linux.BytesOf(pages), Simulator)
}
