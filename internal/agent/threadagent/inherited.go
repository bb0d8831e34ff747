// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/window"
)

// meet remembers the threads that are there. A thread that was there before us, or is not
// pinned when it is first seen, has inherited nothing of ours; what it is pinned to later
// is not our doing. meet returns how many others there are: new ones that are pinned.
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
	if most := 2*threads + 16; len(r.known) > most || len(r.planned) > most {
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
	for tid := range r.planned {
		if !there[tid] {
			delete(r.planned, tid)
		}
	}
}

// searchEvery is the shortest time between two searches for threads that inherited: one takes
// some milliseconds of a process with thousands of threads.
const searchEvery = 100 * time.Millisecond

// giveBack looks for threads that inherited what we gave to those that started them: after
// a thread was moved, and where a new one is pinned. A thread that is still pinned after
// it was pinned by another process. When it fails, the next window tries again.
func (r *run) giveBack(w window.Window, strangers int) {
	now := r.o.Now()
	if strangers == 0 && !r.o.Actor.Passing() || !r.searched.IsZero() && now.Sub(r.searched) < searchEvery {
		return
	}
	r.searched = now
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

// plannedMove is where a dry run would have put a thread.
type plannedMove struct {
	start uint64
	node  int // index; −1: back to what it had
}

// isNewMove is false where a dry run has said this before: since no thread is moved, a policy
// asks for the same again and again, though maybe for another CPU of the node.
func (r *run) isNewMove(s action.Step) bool {
	next := plannedMove{s.Start, -1}
	for i, n := range r.window.Nodes {
		if cpu, ok := s.CPUs.First(); ok && n.CPUs.Has(cpu) {
			next.node = i
		}
	}
	before, ok := r.planned[s.Thread]
	r.planned[s.Thread] = next
	return !ok || before != next
}
