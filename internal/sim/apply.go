// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"homenode/internal/action"
	"homenode/internal/control"
)

// Apply takes steps as an owner does; what became of them is in the next window. A
// move takes time: it goes on while the world runs, at its rate, and takes CPU and
// bandwidth.
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
