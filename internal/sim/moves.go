// SPDX-License-Identifier: Apache-2.0

package sim

// move is one of a workload's pages (package mover describes it; the numbers are its).
type move struct {
	*Move
	wl *Workload
}

// Moving says whether the window has moves.
func (w *World) Moving() bool { return len(w.moves) > 0 }

// PlanMoves is number 1: one move after the other. It returns the pages a second that
// they ask to move.
func (w *World) PlanMoves(dt float64) (traffic float64) {
	left := dt
	for _, m := range w.moves {
		if m.Turn(left, m.wl.Here()) {
			w.population.Open(m.wl)
			left -= w.Mover.Plan(m.Move, left)
			traffic += m.Pages / dt
		}
	}
	return traffic
}

// LoadMovers is number 2: it appends to Loads. Their workloads come after all others.
func (w *World) LoadMovers(dt float64) {
	turns := 0.0
	for _, m := range w.moves {
		turns += m.Seconds
	}
	for _, m := range w.moves {
		w.Loads = w.Mover.Load(m.Move, w.Loads, len(w.live), turns, dt)
	}
}

// MovePages is numbers 3 and 4: the part of the plan that was served. served tells the
// pages of a move, the CPU seconds of all, and of one.
func (w *World) MovePages(served func(m *Move) (pages, cpu, each float64)) {
	for _, m := range w.moves {
		if m.Pages <= 0 {
			continue
		}
		pages, cpu, each := served(m.Move)
		if pages <= 0 {
			continue
		}
		w.population.Open(m.wl)
		w.Mover.Did(m.Move, pages, cpu)
		w.population.Close(m.wl)
		m.wl.stop(m.Stands(cpu, each))
		w.Mover.Look(m.Move)
	}
}

// endMoves makes the outcomes of the window's moves. A move whose turn did not come has
// none, nor one whose turn was only what rounding left of another's.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.Told() {
			w.outcomes = append(w.outcomes, m.Outcome(m.wl.Here()))
		}
	}
	w.moves = w.moves[:0]
}
