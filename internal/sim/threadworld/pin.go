// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim"
)

// Take pins a thread. Restore gives threads their own affinity back, too.
func (w *World) Take(x *sim.Workload, s action.Step) (action.Outcome, bool) {
	wl := w.of[x]
	switch s.Kind {
	case action.PinThread:
		return w.pin(wl, s, wl.Foreign()), true
	case action.Restore:
		w.release(wl)
	}
	return action.Outcome{}, false
}

// pin is sched_setaffinity of one thread. The thread is moved at once, to the CPU with the
// least to do. A released thread gets its affinity back at once, and stays there until it
// is moved. No CPUs: its affinity is what it was before.
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
		return refused("pin thread %d of %s: refused: another process tied it to %s", t.id, wl.ID, t.own)
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

// release gives threads that homenode tied their affinity back.
func (w *World) release(wl *workload) {
	for i := range wl.threads {
		if t := &wl.threads[i]; t.ours {
			t.own, t.ours = set.CPUSet{}, false
			w.allow(t)
		}
	}
}
