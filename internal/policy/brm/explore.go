// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"cmp"
	"slices"

	"homenode/internal/window"
)

// proposal is a thread that is to go to a node.
type proposal struct {
	thread int
	node   int
	why    reason
	order  uint64 // drawn: the first get the idle CPUs
	draw   draw
}

// reason is why a thread goes.
type reason int8

const (
	byBias reason = iota
	toExplore
	toTry // as toExplore, in a trial
	goesHome
	forAnother // it swaps with a thread that gains more than it loses
)

// decide is numbers 7 and 8 for each thread that may be moved.
func (r *round) decide() {
	for i := range r.loads {
		l, wl := &r.loads[i], &r.w.Workloads[i]
		trying := 0
		for k := l.first; l.trial && k < l.first+l.count; k++ {
			if r.next.Threads[k].Home != none {
				trying++
			}
		}
		for k := l.first; k < l.first+l.count; k++ {
			t := &r.next.Threads[k]
			if l.candidate || l.verdict.tagged {
				t.Home = none // its trial found something, or the operator set a tag
			}
			switch {
			case (t.Held || wl.Threads[k-l.first].Ours) && !(r.cfg.Hold && (l.candidate || l.trial) && !r.crowded(t.Node)):
				r.release(l, wl, k)
			case r.movable(k) && (l.candidate || l.trial || t.Home != none):
				r.draw(l, wl, k, &trying)
			}
		}
	}
	slices.SortFunc(r.proposals, func(a, b proposal) int { return cmp.Or(cmp.Compare(a.order, b.order), a.thread-b.thread) })
}

// movable reports that a thread's place is known and was not set by another process, and
// that no move of it was just refused.
func (r *round) movable(k int) bool {
	s, t := &r.threads[k], &r.next.Threads[k]
	return s.cpu != none && !s.th.Pinned && r.next.Now >= t.Until
}

// draw is for one thread: the paper's draw where it knows a better node (7), else whether
// it explores a node that it does not know (8).
func (r *round) draw(l *load, wl *window.Workload, k int, trying *int) {
	s, t := &r.threads[k], &r.next.Threads[k]
	d := r.drawOf(l.hash, t.ID)
	visits := r.next.visits(k)
	switch {
	case !l.candidate && !l.trial: // a trial sent it away and found nothing
		r.propose(k, t.Home, goesHome, d)
	case !s.settled || r.idle(t):
	case t.Bias != t.Node && t.Bias != none:
		if r.roomOn(wl, s.th, t.Bias) && d.below(certain) < t.Prob {
			r.propose(k, t.Bias, byBias, d)
		}
	case r.next.Now < t.Next || r.explorers >= r.mostExplorers || d.below(certain) >= r.cfg.ExploreChance:
	case l.trial && *trying >= r.cfg.TrialThreads && t.Home == none:
	default:
		if to := r.unknown(wl, s.th, t.Node, visits, &d); to != none {
			why := toExplore
			if l.trial {
				why = toTry
				*trying++
			}
			r.explorers++
			r.propose(k, to, why, d)
		}
	}
}

// idle reports that a thread waits too little for memory to gain by a move.
func (r *round) idle(t *Thread) bool {
	stall, ok := t.Stall.Get()
	return ok && stall < float64(r.cfg.MinStall)
}

func (r *round) propose(k, to int, why reason, d draw) {
	r.proposals = append(r.proposals, proposal{thread: k, node: to, why: why, order: d.next(), draw: d})
}

// unknown is the nearest node that a thread may use and does not know, among the nearest
// ExploreNodes; none if it knows all of those. Of several equally near, one is drawn.
func (r *round) unknown(wl *window.Workload, th *window.Thread, from int, visits []Visit, d *draw) int {
	all := true
	for k := range visits {
		all = all && visits[k].Known
	}
	if all {
		return none
	}
	near := r.nearest(from)
	if n := r.cfg.ExploreNodes; n > 0 && n < len(near) {
		for last := near[n-1]; n < len(near) && r.distance(from, int(near[n])) == r.distance(from, int(last)); n++ {
		}
		near = near[:n]
	}
	var ties [8]int16
	n, best := 0, 0
	for _, k := range near {
		if visits[k].Known || !r.roomOn(wl, th, int(k)) {
			continue
		}
		if far := r.distance(from, int(k)); n == 0 {
			best = far
		} else if far > best || n == len(ties) {
			break
		}
		ties[n] = k
		n++
	}
	if n == 0 {
		return none
	}
	return int(ties[d.below(n)])
}

// nearest lists the other nodes from near to far.
func (r *round) nearest(from int) []int16 {
	if r.near == nil {
		r.near = make([][]int16, len(r.nodes))
	}
	if r.near[from] == nil {
		for k := range r.nodes {
			if k != from {
				r.near[from] = append(r.near[from], int16(k))
			}
		}
		slices.SortStableFunc(r.near[from], func(a, b int16) int {
			return cmp.Compare(r.distance(from, int(a)), r.distance(from, int(b)))
		})
	}
	return r.near[from]
}

func (r *round) distance(from, to int) int {
	return r.m.Distance(r.nodes[from].id, r.nodes[to].id).Or(farthest)
}

// farthest is larger than every SLIT distance, which is one byte.
const farthest = 256

// roomOn reports that a thread may use a CPU of a node.
func (r *round) roomOn(wl *window.Workload, th *window.Thread, k int) bool {
	return mayUse(wl, th).Overlaps(r.nodes[k].set)
}
