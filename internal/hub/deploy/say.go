// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/rollout"
)

// Sentence says what happened, and by which evidence.
func (r Rollout) Sentence(e rollout.Event) string {
	of := len(r.State.Plan.Replicas)
	bound := fmt.Sprintf("%d of %s are to be bound from now on", e.Bound, render.Count(of, "replica"))
	switch e.Code {
	case rollout.Starts:
		return "it starts: " + bound
	case rollout.Widens:
		return "more harm than " + percent(r.State.Plan.Margin) + " is excluded: " + bound + r.shown(e)
	case rollout.Replaces:
		return "hosts do not bind it, and others take their place: " + bound
	case rollout.Proven:
		return "the gain is proven" + r.shown(e)
	case rollout.Complete:
		return fmt.Sprintf("all %s are bound, and the gain is proven", render.Count(of, "replica"))
	}
	why := map[rollout.Code]string{
		rollout.Harm:     "binding does harm",
		rollout.NoGain:   "no gain was proven in the time of a stage",
		rollout.NotSafe:  "harm of more than " + percent(r.State.Plan.Margin) + " was not excluded in the time of a stage",
		rollout.Silence:  "most of the bound replicas show nothing any more",
		rollout.Constant: "the indicator is the same for all replicas at all times, so it measures nothing",
		rollout.NewUnit:  "the indicator of most replicas jumped by a factor of 100 or more at once, as if its unit had changed",
		rollout.TooFew:   "most of the replicas to compare with show nothing any more",
		rollout.Veto:     "its owner said no",
		rollout.Operator: "it was asked for",
		rollout.Lost:     "bound replicas ended more often than others",
		rollout.NotBound: "most of the hosts that were to bind it did not, in the time of a stage",
		rollout.Away:     "hub, store or orders were away for longer than orders hold, so hosts may not have been bound",
		rollout.TooLong:  "it went on for longer than its figures can be kept",
	}[e.Code]
	return "rolled back: " + render.Or(why, string(e.Code)) + r.shown(e)
}

// shown is the evidence, where there is some.
func (r Rollout) shown(e rollout.Event) string {
	if e.Evidence == nil {
		return ""
	}
	return " (" + r.Shown(*e.Evidence) + ")"
}

// Shown says what the bound replicas show against the others.
func (r Rollout) Shown(e rollout.Evidence) string {
	return fmt.Sprintf("%s is %s, between %s and %s, from %s against %s; look %d, %s", r.Indicator, Worse(e.Effect), Worse(e.AtLeast), Worse(e.AtMost),
		render.Count(e.Bound, "host"), render.Integer(e.Others), e.Look, r.How)
}

// Worse is an effect in words: above 0 is worse.
func Worse(x float64) string {
	if x < 0 {
		return percent(-x) + " better"
	}
	return percent(x) + " worse"
}

func percent(x float64) string { return fmt.Sprintf("%.3g %%", 100*x) }

// Words say in a few words where it is.
func (r Rollout) Words() string {
	words := []string{r.Stage()}
	if r.State.Paused && !r.State.Ended() {
		words = append(words, "paused")
	}
	if r.State.Held && !r.State.Ended() {
		words = append(words, "held: hosts do not bind it")
	}
	if r.State.Proven && r.State.Phase == rollout.Widening {
		words = append(words, "gain proven")
	}
	if r.Vetoed {
		words = append(words, "vetoed")
	}
	return strings.Join(words, ", ")
}

// Stage says where it is, such as "stage 2 of 4".
func (r Rollout) Stage() string {
	s := r.State
	switch {
	case s.Phase == rollout.Done:
		return "done"
	case s.Phase == rollout.RolledBack:
		return "rolled back"
	case s.Phase == rollout.Before:
		return "watched before"
	}
	return fmt.Sprintf("stage %d of %d", s.Stage+1, len(s.Plan.Stages))
}
