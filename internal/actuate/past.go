// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Past is what was moved for a workload within the horizon. It outlives its job: a
// policy that binds back and forth starts a new job each time.
type Past struct {
	Workload string `json:"workload"`
	Moves    []Move `json:"moves"` // oldest first
}

// Move is one move of a workload's pages, over any number of windows in a row.
type Move struct {
	From  set.NodeSet `json:"from"`
	To    set.NodeSet `json:"to"`
	Bytes unit.Bytes  `json:"bytes"`
	Seq   uint64      `json:"seq"` // the last window with an outcome of it
	At    time.Time   `json:"at"`  // that window's end
}

// mostMoves moves are remembered for a workload; the patience stops growing long
// before.
const mostMoves = 64

// undoneBy says that pages which this move brought to some of these nodes would go back
// to some of those.
func (m Move) undoneBy(from, to set.NodeSet) bool {
	return m.From.Overlaps(to) && m.To.Overlaps(from)
}

func findPast(past []Past, workload string) (int, bool) {
	return slices.BinarySearchFunc(past, workload, func(p Past, id string) int { return cmp.Compare(p.Workload, id) })
}

// movesOf are a workload's moves within the horizon.
func (r *round) movesOf(workload string) []Move {
	i, ok := findPast(r.past, workload)
	if !ok {
		return nil
	}
	return r.past[i].Moves
}

// recall copies the moves that are within the horizon.
func (r *round) recall(past []Past) {
	for _, p := range past {
		var kept []Move
		for _, m := range p.Moves {
			if m.At.After(r.w.At) { // the clock was set back: otherwise it would stay for that long
				m.At = r.w.At
			}
			if r.w.At.Sub(m.At) < r.cfg.Horizon {
				kept = append(kept, m)
			}
		}
		if len(kept) > 0 {
			r.past = append(r.past, Past{Workload: p.Workload, Moves: kept})
		}
	}
}

// book remembers what a step moved, whatever happened to its job meanwhile. Outcomes of
// windows in a row to the same nodes are one move.
func (r *round) book(o *action.Outcome) {
	i, ok := findPast(r.past, o.Step.Workload)
	if o.Status == action.Gone {
		if ok {
			r.past = slices.Delete(r.past, i, i+1)
		}
		return
	}
	if o.Step.Kind != action.MovePages || o.Moved <= 0 {
		return
	}
	if !ok {
		r.past = slices.Insert(r.past, i, Past{Workload: o.Step.Workload})
	}
	p := &r.past[i]
	move := Move{From: o.Step.From, To: o.Step.Nodes, Bytes: o.Moved, Seq: r.w.Seq, At: r.w.At}
	if n := len(p.Moves); n > 0 && p.Moves[n-1].To == move.To && p.Moves[n-1].Seq+1 >= r.w.Seq {
		move.From = move.From.Union(p.Moves[n-1].From)
		move.Bytes += p.Moves[n-1].Bytes
		p.Moves[n-1] = move
		return
	}
	p.Moves = append(p.Moves, move)
	p.Moves = p.Moves[max(0, len(p.Moves)-mostMoves):]
}

// journeysGoOn keeps moves as one move if they had no turn in the last window.
func (r *round) journeysGoOn() {
	for k := range r.jobs {
		j := &r.jobs[k]
		if !j.Asked {
			continue
		}
		i, ok := findPast(r.past, j.Workload)
		if !ok {
			continue
		}
		if last := &r.past[i].Moves[len(r.past[i].Moves)-1]; last.To == j.Nodes && last.Seq+1 >= r.w.Seq {
			last.Seq = r.w.Seq
		}
	}
}

// patience is the number of windows in which a move must have paid, on average, before
// it begins. The first move need not wait, nor a second one that moves pages on and not
// back. From there on the number doubles with each move within the horizon.
func (r *round) patience(j *Job, p pages) int {
	moves := r.movesOf(j.Workload)
	n := len(moves)
	if n == 0 || n == 1 && !moves[0].undoneBy(p.from, j.Nodes) {
		return 0
	}
	return r.cfg.NoProgressWindows << min(n-1, r.cfg.PingPongDoublings)
}

// undone is the bytes whose earlier move would have been in vain.
func (r *round) undone(j *Job, p pages) (sum unit.Bytes) {
	for _, m := range r.movesOf(j.Workload) {
		if m.undoneBy(p.from, j.Nodes) {
			sum += m.Bytes
		}
	}
	return min(sum, p.all)
}
