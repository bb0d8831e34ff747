// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"

	"homenode/internal/sim"
)

// takeMovers subtracts the mover's CPU time from the nodes' CPUs, from all CPUs of a node
// equally.
func (w *World) takeMovers(dt float64) {
	for n := range w.nodes {
		cpus := float64(len(w.nodes[n].cpus))
		if cpus == 0 {
			continue
		}
		taken := w.Mover.Take(n, dt)
		w.Busy[n] += taken
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

// served is the part of a move that memory served in a step (sim.World.MovePages).
func (w *World) served(m *sim.Move, dt float64) (pages, cpu, each float64) {
	ops, cycles := 0.0, 0.0
	loads := m.Served(w.result.Loads)
	for k := range loads {
		r := &loads[k]
		ops += r.Ops
		cycles += r.Ops * r.Cycles
	}
	pages = min(m.Pages, ops*dt)
	if pages > m.Pages*0.99 { // except for changes too small to notice
		pages = m.Pages
	}
	each = cycles / ops / w.Config.System.Hz
	return pages, pages * each, each
}
