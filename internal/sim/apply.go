// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"

	"homenode/internal/action"
	"homenode/internal/control"
)

// Apply takes steps as an owner does; their outcomes are in the next window. A move takes
// time: it continues while the world runs, at its rate, and takes CPU and bandwidth.
func (w *World) Apply(steps []action.Step) {
	take := func(_ context.Context, s action.Step) action.Outcome { return w.take(s) }
	control.InOrder{Take: take}.Apply(context.Background(), steps, func(o action.Outcome) {
		w.outcomes = append(w.outcomes, o)
	})
}

// take carries out one step. Without a status, the outcome comes with the next window.
func (w *World) take(s action.Step) action.Outcome {
	wl, ok := w.find(s.Workload)
	if !ok {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("act on %s: no such file or directory (gone)", s.Workload)}
	}
	if o, ok := w.population.Take(wl, s); ok {
		return o
	}
	if why := wl.refusal(s); why != "" {
		return action.Outcome{Step: s, Status: action.Refused, Detail: why}
	}
	cpus, mems := func() { w.population.CPUsChanged(wl) }, func() { w.setMems(wl) }
	switch s.Kind {
	case action.SetCPUs:
		return wl.setCPUs(s, cpus)
	case action.SetMems:
		return wl.setMems(s, mems)
	case action.MovePages:
		w.moves = append(w.moves, move{w.Mover.Begin(&wl.Group, s), wl})
		return action.Outcome{Step: s}
	}
	return wl.restore(s, cpus, mems)
}

// setMems moves pages inside the write, as fast as an idle machine can. The workload stands
// still meanwhile.
func (w *World) setMems(wl *Workload) {
	w.population.Open(wl)
	seconds := w.Mover.SetMems(&wl.Group, wl.Mems)
	w.population.Close(wl)
	wl.stop(seconds, seconds)
}
