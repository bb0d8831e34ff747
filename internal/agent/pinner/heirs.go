// SPDX-License-Identifier: Apache-2.0

package pinner

import (
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/window"
)

// meet remembers who is there: those that were there before us, and those that are not
// pinned, have nothing of ours to inherit any more, and what they are pinned to later
// is not our doing. It returns how many are left: new ones that are pinned.
func (r *run) meet(w window.Window, all bool) (strangers int) {
	threads := 0
	for i := range w.Workloads {
		for k := range w.Workloads[i].Threads {
			t := &w.Workloads[i].Threads[k]
			threads++
			if r.isKnown(t.ID, t.Start) {
				continue
			}
			if t.Pinned && !all {
				strangers++
				continue
			}
			r.known[t.ID] = t.Start
		}
	}
	if most := 2*threads + 16; len(r.known) > most || len(r.wished) > most {
		r.prune(w)
	}
	return strangers
}

func (r *run) isKnown(tid int, start uint64) bool {
	known, ok := r.known[tid]
	return ok && known == start
}

// prune forgets threads that are not there any more.
func (r *run) prune(w window.Window) {
	there := map[int]bool{}
	for i := range w.Workloads {
		for k := range w.Workloads[i].Threads {
			there[w.Workloads[i].Threads[k].ID] = true
		}
	}
	for tid := range r.known {
		if !there[tid] {
			delete(r.known, tid)
		}
	}
	for tid := range r.wished {
		if !there[tid] {
			delete(r.wished, tid)
		}
	}
}

// lookEvery is how often heirs are looked for at most: it takes some milliseconds of a
// process with thousands of threads.
const lookEvery = 100 * time.Millisecond

// giveBack looks for threads that inherited what we gave to those that started them:
// where somebody has been moved, and where somebody new is pinned. Who is still pinned
// after it is so by somebody else. When it fails, the next window tries again.
func (r *run) giveBack(w window.Window, strangers int) {
	now := r.o.Now()
	if strangers == 0 && !r.o.Actor.Passing() || !r.looked.IsZero() && now.Sub(r.looked) < lookEvery {
		return
	}
	r.looked = now
	given, err := r.o.Actor.GiveBack()
	for _, x := range given {
		if x.Result == journal.PutBack {
			r.sum.Inherited++
		}
	}
	if err != nil {
		r.problem(err.Error())
		return
	}
	r.meet(w, true)
}

// wish is where a dry run would have put a thread.
type wish struct {
	start uint64
	node  int // index; −1: back to what it had
}

// wishNew says whether a dry run said this before: since nobody is moved, a policy
// wishes the same again and again, though maybe for another CPU of the node.
func (r *run) wishNew(w window.Window, th window.Thread, s action.Step) bool {
	next := wish{th.Start, -1}
	for i, n := range w.Nodes {
		if cpu, ok := s.CPUs.First(); ok && n.CPUs.Has(cpu) {
			next.node = i
		}
	}
	before, ok := r.wished[s.Thread]
	r.wished[s.Thread] = next
	return !ok || before != next
}
