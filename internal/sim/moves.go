// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/mover"
)

// move is a workload's (package mover has what it is, and the numbers).
type move struct {
	*mover.Move
	wl *workload
}

// planMoves is number 1: one after the other.
func (w *World) planMoves(dt float64) {
	left := dt
	for _, m := range w.moves {
		if m.Turn(left, m.wl.here()) {
			left -= w.mover.Plan(m.Move, left)
		}
	}
}

// takeMovers takes the mover's CPU time from the nodes.
func (w *World) takeMovers(dt float64) {
	for n, p := range w.places {
		taken := w.mover.Take(n, dt)
		w.busy[n] += taken
		w.host.Nodes[n].CPUs = p.count - taken/dt
	}
}

// giveMovers gives the nodes' CPUs back.
func (w *World) giveMovers() {
	for n, p := range w.places {
		w.host.Nodes[n].CPUs = p.count
	}
}

// loadMovers is number 2.
func (w *World) loadMovers(dt float64) {
	turns := 0.0
	for _, m := range w.moves {
		turns += m.Seconds
	}
	for _, m := range w.moves {
		w.loads = w.mover.Load(m.Move, w.loads, len(w.live), turns, dt)
	}
}

// movePages is numbers 3 and 4: what of the plan was served.
func (w *World) movePages(dt float64, res *memsys.Result) {
	for _, m := range w.moves {
		if m.Pages <= 0 {
			continue
		}
		pages, cpu := 0.0, 0.0
		served := m.Served(res.Loads)
		for k := range served {
			r := &served[k]
			pages += float64(r.Ops * dt)
			cpu += float64(r.Ops * dt * r.Cycles)
		}
		if cpu /= w.c.System.Hz; pages <= 0 {
			continue
		}
		if pages > m.Pages*(1-1e-9) { // but for rounding
			pages = m.Pages
		}
		w.mover.Did(m.Move, pages, cpu)
		m.wl.stop(m.Stands(cpu, cpu/pages))
		w.mover.Look(m.Move)
	}
}

// endMoves is what became of the window's moves. One whose turn did not come has no
// outcome.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.Begun() {
			w.outcomes = append(w.outcomes, m.Outcome(m.wl.here()))
		}
	}
	w.moves = w.moves[:0]
}
