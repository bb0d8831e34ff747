// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// World is a host, a recording or a simulation.
type World interface {
	Machine() machine.Machine
	// Read returns the next window. Its Outcomes are those that the Applier did not
	// report: of steps that were still under way.
	Read(ctx context.Context) (window.Window, error)
}

// Policy decides on a window. It keeps its own state.
type Policy interface {
	Step(m machine.Machine, w window.Window) []action.Action
}

// PolicyFunc is a Policy that is one function.
type PolicyFunc func(m machine.Machine, w window.Window) []action.Action

// Step calls the function.
func (f PolicyFunc) Step(m machine.Machine, w window.Window) []action.Action { return f(m, w) }

// Applier takes steps in their order and reports the outcome of each. The outcome of a
// step that takes longer comes with a later window.
type Applier interface {
	Apply(ctx context.Context, steps []action.Step, tell func(action.Outcome))
}

// Loop runs round by round. The exported fields may change between two rounds. It is not
// safe for concurrent use.
type Loop struct {
	World   World
	Policy  Policy
	Applier Applier // needed once there is a step
	Actuate actuate.Config
	Period  time.Duration // between two windows; page moves are planned for it
	// Decided is called once a round, before its first step; nil: it is not
	// called.
	Decided func(Round)
	// Took is called with the outcome of each step, as soon as it is known; nil: it is not
	// called.
	Took func(action.Outcome)

	jobs     actuate.State
	outcomes []action.Outcome // for the next window
}

// Round is the decisions on one window.
type Round struct {
	Window  window.Window
	Actions []action.Action // the policy's
	Steps   []action.Step
	// Own are actuate's outcomes: a drift that it saw, a step that it gave up, an action
	// that cannot begin.
	Own           []action.Outcome
	Before, After actuate.State
}

// Round is one window:
//
//  1. The world reads it. If that fails nothing else happens: the outcomes of the last steps
//     wait for the next window.
//  2. It gets the outcomes of the last steps: actuate's own first, then those of the steps
//     in the order in which they were taken, then those that the world reports.
//  3. The policy decides, and actuate turns that into steps.
//  4. guard refuses steps that must not be taken, whatever the policy asks for.
//  5. The others are taken.
func (l *Loop) Round(ctx context.Context) (Round, error) {
	w, err := l.World.Read(ctx) // 1
	if err != nil {
		return Round{}, err
	}
	w.Outcomes = joined(l.outcomes, w.Outcomes)         // 2
	r := l.Plan(w, l.Policy.Step(l.World.Machine(), w)) // 3
	l.jobs, l.outcomes = r.After, r.Own
	if l.Decided != nil {
		l.Decided(r)
	}
	if steps := guard(&r.Window, r.Steps, l.tell); len(steps) > 0 { // 4
		l.Applier.Apply(ctx, steps, l.tell) // 5
	}
	return r, nil
}

func joined(last, more []action.Outcome) []action.Outcome {
	if len(last) == 0 {
		return more
	}
	return append(slices.Clip(last), more...)
}

func (l *Loop) tell(o action.Outcome) {
	l.outcomes = append(l.outcomes, o)
	if l.Took != nil {
		l.Took(o)
	}
}

// Plan returns what a round would do about these actions in this window. It takes no
// step and changes nothing.
func (l *Loop) Plan(w window.Window, actions []action.Action) Round {
	cfg := l.Actuate
	cfg.Turn = l.Period
	r := Round{Window: w, Actions: actions, Before: l.jobs}
	r.After, r.Steps, r.Own = actuate.Step(l.World.Machine(), cfg, l.jobs, actions, w)
	return r
}

// Jobs are the bindings that are under way.
func (l *Loop) Jobs() actuate.State { return l.jobs }

// Progress is what a loop remembers between two rounds.
type Progress struct {
	Jobs     actuate.State    `json:"jobs"`
	Outcomes []action.Outcome `json:"outcomes,omitempty"` // for the next window
}

// Progress is for another loop that continues with the same world.
func (l *Loop) Progress() Progress { return Progress{l.jobs, l.outcomes} }

// Continue takes another loop's progress, before the first round.
func (l *Loop) Continue(p Progress) { l.jobs, l.outcomes = p.Jobs, p.Outcomes }
