// SPDX-License-Identifier: Apache-2.0

package brm

import "math"

// learn is numbers 4 and 5 for each thread that was on one node for a whole period and made
// enough requests in it.
func (r *round) learn() {
	for k := range r.threads {
		s, t := &r.threads[k], &r.next.Threads[k]
		visits := r.next.visits(k)
		r.forget(t, visits)
		if t.Node == none || !s.fresh || !s.known || t.Here <= r.cfg.Settle {
			continue
		}
		r.visit(s, t, visits)
		r.bias(s, t, visits)
		s.settled = t.Counted >= r.cfg.Samples
	}
}

// forget makes nodes unknown that were not visited for long. The more visits in vain, the
// longer it takes.
func (r *round) forget(t *Thread, visits []Visit) {
	for k := range visits {
		v := &visits[k]
		if !v.Known || k == t.Node {
			continue
		}
		if again := min(max(0, int(v.Tries)-1), mostDoublings); r.next.Now-v.At > r.cfg.Forget<<again {
			v.Known = false
		}
	}
}

// visit is number 4. A stay's first figures are a plain mean: what was known of the node
// from an earlier stay no longer counts.
func (r *round) visit(s *seen, t *Thread, visits []Visit) {
	v := &visits[t.Node]
	t.Counted = min(t.Counted+1, manyPeriods)
	a := max(r.cfg.Smoothing, 1/float64(t.Counted))
	old := float64(v.Own)
	v.Penalty = float32(float64(v.Penalty) + float64(a*(s.value-float64(v.Penalty))))
	v.Own = float32(old + float64(a*(t.Penalty-old)))
	v.At, v.Known = r.next.Now, true
	if v.Tries == 0 {
		v.Tries = 1
	}
	if t.Counted > 1 && old > 0 {
		t.Noise += float64(r.cfg.Smoothing * (min(1, math.Abs(t.Penalty/old-1)) - t.Noise))
	}
	if t.Counted == r.cfg.Samples {
		t.Explores = false
	}
	if t.Counted >= r.cfg.Samples {
		r.changed(t, visits)
	}
	r.fade(t, visits)
}

// changed handles a thread that is much worse than before, here or elsewhere: what it knows
// of other nodes is out of date. Without this, two threads that do best side by side, and
// that missed each other, would believe for long that all nodes are equally bad. Four
// threads that were each alone on a node once, and cannot be again, would forget for ever;
// therefore the time doubles with each change.
func (r *round) changed(t *Thread, visits []Visit) {
	own := float64(visits[t.Node].Own)
	if t.Base == 0 || own < t.Base {
		t.Base = own
	}
	t.Base += float64(r.drift * (own - t.Base))
	if own <= t.Base*(1+r.cfg.Change+t.Noise) {
		t.Worse = 0
		return
	}
	if r.next.Now > t.Calm {
		t.Changes = 0
	}
	if t.Worse++; t.Worse < r.cfg.ChangePeriods<<t.Changes { // others may explore, and leave again
		return
	}
	t.Base, t.Worse, t.Changes = own, 0, min(t.Changes+1, mostDoublings)
	t.Calm = r.next.Now + r.cfg.Forget<<t.Changes
	for k := range visits {
		if k != t.Node {
			visits[k].Known, visits[k].Tries = false, min(visits[k].Tries, 1)
		}
	}
}

// fade moves what is remembered of other nodes towards the figure here: without evidence
// there is no difference. It never makes a worse node better than this one.
func (r *round) fade(t *Thread, visits []Visit) {
	here := float64(visits[t.Node].Penalty)
	for k := range visits {
		if v := &visits[k]; v.Known && k != t.Node {
			v.Penalty = float32(float64(v.Penalty) + float64(r.drift*(here-float64(v.Penalty))))
		}
	}
}

// bias is number 5, the paper's comparison.
func (r *round) bias(s *seen, t *Thread, visits []Visit) {
	best := r.best(s, t, visits, false)
	if best != t.Node && !r.roomOn(&r.w.Workloads[s.workload], s.th, best) {
		best = r.best(s, t, visits, true)
	}
	if float64(visits[t.Node].Penalty) > float64(visits[best].Penalty)*(1+r.cfg.Margin) && r.worthIt(t, &visits[t.Node], &visits[best]) {
		t.Bias, t.Prob = best, min(certain, t.Prob+r.cfg.Rise)
		return
	}
	if visits[t.Node].Tries > 1 && t.Counted == r.cfg.Samples && t.Bias != t.Node {
		visits[t.Node].Tries = 1 // this visit was not in vain
	}
	t.Bias, t.Prob = t.Node, max(0, t.Prob-r.cfg.Fall)
}

// worth is the share of its time that a thread must gain to be moved: as much as keeps a
// workload a candidate.
func (r *round) worth() float64 { return float64(float64(r.cfg.MinGain) * 0.5) }

// worthIt reports that the move from here to there gains a thread that much. A thread that
// only came to explore goes back for less. With a wider scope the difference is not the
// thread's own; there the sum decides.
func (r *round) worthIt(t *Thread, here, there *Visit) bool {
	if stall, ok := t.Stall.Get(); ok && !t.Looks && r.cfg.Scope == ScopeThread && here.Penalty > 0 {
		return stall*(1-float64(there.Penalty)/float64(here.Penalty)) >= r.worth()
	}
	return true
}

// best is the node with the least penalty; with allowed, only among nodes that it may use.
func (r *round) best(s *seen, t *Thread, visits []Visit, allowed bool) int {
	best := t.Node
	for k := range visits {
		v := &visits[k]
		if v.Known && v.Penalty < visits[best].Penalty && (!allowed || r.roomOn(&r.w.Workloads[s.workload], s.th, k)) {
			best = k
		}
	}
	return best
}
