// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// World is what a loop runs: *sim.World, or a fake.
type World interface {
	Run(d time.Duration)
	Window() window.Window
	Apply(steps []action.Step)
}

// Loop lets a policy act in a world, as the agent does on a host. Set the first
// fields and call Round again and again.
type Loop struct {
	World   World
	Machine machine.Machine
	Policy  Policy
	Actuate actuate.Config
	Period  time.Duration
	Counts  Counts

	jobs actuate.State
	told []action.Outcome // by actuate, for the next window
}

// Counts is what became of a loop's steps.
type Counts struct {
	Pins    int     // pin-threads done that put a thread somewhere
	Binds   int     // set-cpus done, of bindings with memory
	Asides  int     // set-cpus done, of CPUs only
	Unbinds int     // restores done
	Refused int     // refused or failed steps, and wishes that could not be begun
	Moved   float64 // bytes
	CPU     float64 // seconds that the mover took
}

// Round is one period: the world runs, the policy sees it, and steps are taken at
// the end. The window is what the policy saw.
func (l *Loop) Round() window.Window {
	l.World.Run(l.Period)
	w := l.World.Window()
	l.count(w.Outcomes)
	w.Outcomes = append(l.told, w.Outcomes...)
	wishes := l.Policy.Step(l.Machine, w)
	c := l.Actuate
	c.Turn = l.Period
	var steps []action.Step
	l.jobs, steps, l.told = actuate.Step(l.Machine, c, l.jobs, wishes, w)
	for _, o := range l.told {
		if o.Status == action.Refused {
			l.Counts.Refused++
		}
	}
	l.World.Apply(steps)
	return w
}

// count is of what the world did; jobs are still those that asked for it.
func (l *Loop) count(outcomes []action.Outcome) {
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
			if job, _ := l.jobs.Job(o.Step.Workload); job.CPUsOnly {
				l.Counts.Asides++
			} else {
				l.Counts.Binds++
			}
		}
	}
}

// Bound says whether a workload is bound to nodes now, as far as the loop knows:
// its CPUs are set, and its memory is there or on its way.
func (l *Loop) Bound(id string) bool {
	job, ok := l.jobs.Job(id)
	if !ok || job.CPUsOnly {
		return false
	}
	switch job.Stage {
	case actuate.StageWiden, actuate.StagePages, actuate.StageMems, actuate.StageBound, actuate.StageCPUsOnly:
		return true
	}
	return false
}

// Jobs are what is under way.
func (l *Loop) Jobs() actuate.State { return l.jobs }
