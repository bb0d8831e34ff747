// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// Round is the optimizer for whoever decides window after window: Step with the room of
// the round before, and words when somebody asks for them. Most of them nobody reads: of
// hundreds of workloads, one or two are asked about between two windows. What it answers
// depends on the arguments of its Step alone. The zero Round is ready; it is not safe for
// concurrent use.
type Round struct {
	// Mute: nobody will ask for reasons, and nothing is kept for them.
	Mute bool

	r round
}

// Step is one round: the same next state and actions as those of the function Step.
// The window must not change while reasons are asked for.
func (o *Round) Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action) {
	o.r.explain = !o.Mute
	o.r.begin(m, cfg, st, w) // 1
	next := o.r.run(st)
	return next, o.r.actions
}

// Rule is the rule that fired for workload i of the last Step's window.
func (o *Round) Rule(i int) string { return o.r.rules[i] }

// Reason is why, in words, with the numbers that were looked at; not of a mute round.
func (o *Round) Reason(i int) action.Reason {
	r := &o.r
	switch {
	case r.reasons[i].Rule != "":
		return r.reasons[i]
	case r.later[i] != nil:
		return r.later[i]().reason(r.rules[i], r.loads[i].ID)
	}
	return r.wordsOf(i).reason(r.rules[i], r.loads[i].ID)
}

// Reasons are those of all workloads of the last Step's window, in their order. They are
// the caller's.
func (o *Round) Reasons() []action.Reason {
	all := make([]action.Reason, len(o.r.rules))
	for i := range all {
		all[i] = o.Reason(i)
	}
	return all
}
