// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"math"

	"homenode/internal/sim/mover"
)

// move is a workload's (package mover has what it is, and the numbers). Their workload's
// pages are put together for it (open). All of a node's CPUs pay alike.
type move struct {
	*mover.Move
	wl *workload
}

// planMoves is number 1: one after the other.
func (w *World) planMoves(dt float64) {
	left, traffic := dt, 0.0
	for _, m := range w.moves {
		if m.Turn(left, m.wl.here()) {
			w.open(m.wl)
			left -= w.mover.Plan(m.Move, left)
			traffic += m.Pages / dt
		}
	}
	if math.Abs(traffic-w.traffic) > 0.01*max(traffic, w.traffic) {
		w.changed = true
	}
}

// takeMovers takes the mover's CPU time from the nodes' CPUs.
func (w *World) takeMovers(dt float64) {
	for n := range w.nodes {
		cpus := float64(len(w.nodes[n].cpus))
		if cpus == 0 {
			continue
		}
		taken := w.mover.Take(n, dt)
		w.busy[n] += taken
		room := 1 - taken/dt/cpus
		first := &w.cpus[w.nodes[n].cpus[0]]
		if math.Abs(room-first.room) <= noticed && (taken > 0 || first.room == 1) {
			continue
		}
		for _, c := range w.nodes[n].cpus {
			w.cpus[c].room = room
		}
		w.stale = true
	}
}

// loadMovers is number 2.
func (w *World) loadMovers(dt float64) {
	turns := 0.0
	w.traffic = 0
	for _, m := range w.moves {
		turns += m.Seconds
		w.traffic += m.Pages / dt
	}
	for _, m := range w.moves {
		w.loads = w.mover.Load(m.Move, w.loads, len(w.live), turns, dt)
	}
}

// movePages is numbers 3 and 4: what of the plan was served.
func (w *World) movePages(dt float64) {
	for _, m := range w.moves {
		if m.Pages <= 0 {
			continue
		}
		ops, cycles := 0.0, 0.0
		served := m.Served(w.result.Loads)
		for k := range served {
			r := &served[k]
			ops += r.Ops
			cycles += float64(r.Ops * r.Cycles)
		}
		if ops <= 0 {
			continue
		}
		pages := min(m.Pages, float64(ops*dt))
		if pages > m.Pages*0.99 { // but for what was not noticed
			pages = m.Pages
		}
		each := cycles / ops / w.c.System.Hz
		cpu := float64(pages * each)
		w.open(m.wl)
		w.mover.Did(m.Move, pages, cpu)
		w.close(m.wl)
		m.wl.requests.Stop(m.Stands(cpu, each))
		w.mover.Look(m.Move)
	}
}

// endMoves is what became of the window's moves. One whose turn did not come, or only for
// what rounding left of another's, has no outcome.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.Told() {
			w.outcomes = append(w.outcomes, m.Outcome(m.wl.here()))
		}
	}
	if len(w.moves) > 0 {
		w.changed = true
	}
	w.moves = w.moves[:0]
}
