// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"fmt"

	"homenode/internal/action"
	"homenode/internal/control"
	"homenode/internal/set"
)

// Apply takes steps as an owner does; what became of them is in the next window. A
// move takes time: it goes on while the world runs.
func (w *World) Apply(steps []action.Step) {
	take := func(_ context.Context, s action.Step) action.Outcome { return w.take(s) }
	control.InOrder{Take: take}.Apply(context.Background(), steps, func(o action.Outcome) {
		w.outcomes = append(w.outcomes, o)
	})
}

// take is one step; no status means that its outcome comes with the next window.
func (w *World) take(s action.Step) action.Outcome {
	wl, ok := w.find(s.Workload)
	if !ok {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("act on %s: no such file or directory (gone)", s.Workload)}
	}
	if s.Kind == action.PinThread {
		return w.pin(wl, s, wl.Foreign())
	}
	if why := wl.Refusal(s); why != "" {
		return action.Outcome{Step: s, Status: action.Refused, Detail: why}
	}
	cpus, mems := func() { w.boundCPUs(wl) }, func() { w.boundMems(wl) }
	switch s.Kind {
	case action.SetCPUs:
		return wl.SetCPUs(s, cpus)
	case action.SetMems:
		return wl.SetMems(s, mems)
	case action.MovePages:
		w.moves = append(w.moves, move{w.mover.Begin(&wl.group, s), wl})
		return action.Outcome{Step: s}
	}
	w.release(wl)
	return wl.Restore(s, cpus, mems)
}

// pin is sched_setaffinity of one thread: it is moved at once, to the CPU that has the
// least to do. Released, it has its affinity back at once, and stays there until it is
// moved. No CPUs: its affinity is what it was.
func (w *World) pin(wl *workload, s action.Step, foreign string) action.Outcome {
	refused := func(format string, args ...any) action.Outcome {
		return action.Outcome{Step: s, Status: action.Refused, Detail: fmt.Sprintf(format, args...)}
	}
	if s.Thread < 1 || s.Thread > len(w.ids) || w.ids[s.Thread-1].wl != wl {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("pin thread %d of %s: no such process (gone)", s.Thread, wl.ID)}
	}
	t := w.ids[s.Thread-1]
	switch usable := s.CPUs.Intersect(wl.CPUs); {
	case foreign != "":
		return refused("%s", foreign)
	case t.pinned:
		return refused("pin thread %d of %s: refused: somebody else tied it to %s", t.id, wl.ID, t.own)
	case s.CPUs.IsEmpty():
		t.own, t.ours = set.CPUSet{}, false
	case usable.IsEmpty():
		return refused("pin thread %d of %s to %s: refused: EINVAL: its cpuset.cpus has %s only", t.id, wl.ID, s.CPUs, wl.CPUs)
	default:
		t.own, t.ours = s.CPUs, true
		w.allow(t)
		if !has(t.mask, t.cpu) {
			w.put(t, w.leastLoaded(t, t.mask))
		}
		if s.Release {
			t.own, t.ours = set.CPUSet{}, false
		}
	}
	w.allow(t)
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s thread %d is on cpu %d", wl.ID, t.id, w.cpus[t.cpu].id)}
}

// release gives threads that we tied back what was theirs.
func (w *World) release(wl *workload) {
	for i := range wl.threads {
		if t := &wl.threads[i]; t.ours {
			t.own, t.ours = set.CPUSet{}, false
			w.allow(t)
		}
	}
}

// boundCPUs is for what follows from other CPUs.
func (w *World) boundCPUs(wl *workload) {
	w.remask(wl)
	w.evict(wl)
}

// boundMems moves pages inside the write, as fast as an idle machine can; the workload
// stands still for it.
func (w *World) boundMems(wl *workload) {
	w.open(wl)
	seconds := w.mover.SetMems(&wl.group, wl.Mems)
	w.close(wl)
	wl.requests.Stop(seconds, seconds)
}
