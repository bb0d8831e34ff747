// SPDX-License-Identifier: Apache-2.0

package sim

// move is a move of a workload's pages (package mover describes it; the numbers are from
// there).
type move struct {
	*Move
	wl *Workload
}

// Moving reports whether the window has moves.
func (w *World) Moving() bool { return len(w.moves) > 0 }

// PlanMoves is number 1: one move after the other. It returns the requested pages per
// second.
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

// LoadMovers is number 2: it appends to Loads. The movers' loads come after all others.
func (w *World) LoadMovers(dt float64) {
	turns := 0.0
	for _, m := range w.moves {
		turns += m.Seconds
	}
	for _, m := range w.moves {
		w.Loads = w.Mover.Load(m.Move, w.Loads, len(w.live), turns, dt)
	}
}

// MovePages is numbers 3 and 4: the part of the plan that was served. served returns the
// pages of a move, the CPU seconds of all its pages, and those of one.
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

// endMoves makes the outcomes of the window's moves. A move whose turn did not come has no
// outcome, nor has one that got only a rounding rest of another's turn.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.Told() {
			w.outcomes = append(w.outcomes, m.Outcome(m.wl.Here()))
		}
	}
	w.moves = w.moves[:0]
}
