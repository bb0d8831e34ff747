// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/control"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// World is a world that a loop runs: *sim.World, *threads.World, or a fake.
type World interface {
	Run(d time.Duration)
	Window() window.Window
	Apply(steps []action.Step)
}

// Loop runs a policy in a world: control.Loop, as the agent runs it on a host. Set the
// first fields and call Round again and again.
type Loop struct {
	World   World
	Machine machine.Machine
	Policy  Policy
	Actuate actuate.Config
	Period  time.Duration
	Counts  Counts

	loop control.Loop
}

// Counts are the outcomes of a loop's steps.
type Counts struct {
	Pins    int     // pin-threads done that placed a thread
	Binds   int     // set-cpus done, of bindings with memory
	Asides  int     // set-cpus done, of CPUs only
	Unbinds int     // restores done
	Refused int     // refused or failed steps, and actions that could not be begun
	Moved   float64 // bytes
	CPU     float64 // seconds that the mover took
}

// Round is one period: the world runs, the policy sees it, and steps are taken at the end.
// The returned window is what the policy saw.
func (l *Loop) Round() window.Window {
	w := simulated{l}
	l.loop.World, l.loop.Policy, l.loop.Applier = w, l.Policy, w
	l.loop.Actuate, l.loop.Period = l.Actuate, l.Period
	l.loop.Took = func(o action.Outcome) { l.count(o) } // for a step that was refused at once
	r, _ := l.loop.Round(context.Background())          // a simulated world can always be read
	for _, o := range r.Own {
		if o.Status == action.Refused {
			l.Counts.Refused++
		}
	}
	return r.Window
}

// simulated is a loop's world. The outcome of a step is in the world's next window.
type simulated struct{ *Loop }

func (s simulated) Machine() machine.Machine { return s.Loop.Machine }

func (s simulated) Read(context.Context) (window.Window, error) {
	s.World.Run(s.Period)
	w := s.World.Window()
	s.count(w.Outcomes...)
	return w, nil
}

func (s simulated) Apply(_ context.Context, steps []action.Step, _ func(action.Outcome)) {
	s.World.Apply(steps)
}

// count counts what the world did, before the next decision: the jobs are still those that
// requested it.
func (l *Loop) count(outcomes ...action.Outcome) {
	for _, o := range outcomes {
		l.Counts.Moved += float64(o.Moved)
		l.Counts.CPU += o.CPUSeconds
		switch {
		case o.Status == action.Refused || o.Status == action.Failed:
			l.Counts.Refused++
		case o.Status != action.Done:
		case o.Step.Kind == action.Restore:
			l.Counts.Unbinds++
		case o.Step.Kind == action.PinThread && !o.Step.CPUs.IsEmpty():
			l.Counts.Pins++
		case o.Step.Kind == action.SetCPUs:
			if job, _ := l.loop.Jobs().Job(o.Step.Workload); job.CPUsOnly {
				l.Counts.Asides++
			} else {
				l.Counts.Binds++
			}
		}
	}
}

// Bound reports whether a workload is bound to nodes now, as far as the loop knows: its
// CPUs are set, and its memory is there or on its way.
func (l *Loop) Bound(id string) bool {
	job, ok := l.loop.Jobs().Job(id)
	if !ok || job.CPUsOnly {
		return false
	}
	switch job.Stage {
	case actuate.StageWiden, actuate.StagePages, actuate.StageMems, actuate.StageBound, actuate.StageCPUsOnly:
		return true
	}
	return false
}

// Jobs are the jobs under way.
func (l *Loop) Jobs() actuate.State { return l.loop.Jobs() }
