// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"homenode/internal/action"
)

// Apply takes steps as an owner does; what became of them is in the next window. A
// move takes time: it goes on while the world runs, at its rate, and takes CPU and
// bandwidth. After a step that was not done, the same workload's further ones are
// dropped, as the live loop does.
func (w *World) Apply(steps []action.Step) {
	stopped := map[string]bool{}
	for _, s := range steps {
		if stopped[s.Workload] {
			continue
		}
		o := w.take(s)
		if o.Status == "" { // a move that has begun
			continue
		}
		stopped[s.Workload] = o.Status != action.Done
		w.outcomes = append(w.outcomes, o)
	}
}

// take is one step; no status means that its outcome comes with the next window.
func (w *World) take(s action.Step) action.Outcome {
	wl, ok := w.find(s.Workload)
	if !ok {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("act on %s: no such file or directory (gone)", s.Workload)}
	}
	if s.Kind == action.SetClass {
		return w.setClass(wl, s)
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
	return wl.Restore(s, cpus, mems)
}

// boundCPUs is for what follows from other CPUs.
func (w *World) boundCPUs(wl *workload) {
	w.host.SetCPUs(&wl.group, w.count(wl.CPUs))
	w.spread(wl)
}

// boundMems moves pages inside the write, as fast as an idle machine can; the workload
// stands still for it.
func (w *World) boundMems(wl *workload) {
	seconds := w.mover.SetMems(&wl.group, wl.Mems)
	wl.stop(seconds, seconds)
}
