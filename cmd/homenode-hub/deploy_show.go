// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/render"
	"homenode/internal/rollout"
	"homenode/internal/unit"
)

// PlanReport is what 'homenode-hub deploy plan -o json' and start write.
type PlanReport struct {
	Service   string               `json:"service"`
	Indicator deploy.Indicator     `json:"indicator"`
	How       unit.Source          `json:"indicator_how"`
	Replicas  int                  `json:"replica_count"`
	Hosts     int                  `json:"host_count"`
	Without   int                  `json:"without_indicator_count"`
	Margin    float64              `json:"margin_ratio"`
	Stages    []float64            `json:"stage_ratios"`
	Bound     []int                `json:"stage_bound_counts"`
	Fit       deploy.Fit           `json:"fit"`
	Shortest  time.Duration        `json:"shortest_ns"`
	Longest   time.Duration        `json:"longest_ns"`
	Local     unit.Opt[unit.Ratio] `json:"local_ratio"`
	Gain      unit.Opt[unit.Ratio] `json:"saved_ratio"` // share of its CPU time, at most
	GainHow   unit.Source          `json:"saved_how"`
	Expected  *sensitivity.Service `json:"prediction,omitempty"` // of a model of gains, if one was given
}

func planReport(p deploy.Proposal, expected *sensitivity.Service) PlanReport {
	plan := p.Rollout.State.Plan
	return PlanReport{
		Service: plan.Service, Indicator: p.Rollout.Indicator, How: p.Rollout.How, Replicas: len(plan.Replicas), Hosts: p.Hosts, Without: p.Without, Fit: p.Fit,
		Margin: plan.Margin, Stages: plan.Stages, Bound: p.Bounds, Shortest: p.Time[0], Longest: p.Time[1], Local: p.Local, Gain: p.Gain, GainHow: p.GainHow, Expected: expected,
	}
}

func showPlan(t *render.Terminal, p deploy.Proposal, expected *sensitivity.Service, started bool) {
	plan := p.Rollout.State.Plan
	better := "more is better"
	if plan.LowerIsBetter {
		better = "less is better"
	}
	gain := render.Unknown
	if x, ok := p.Gain.Get(); ok {
		gain = fmt.Sprintf("%s of its CPU time at most (%s)", render.Percent(float64(x)), p.GainHow)
	}
	var stages []string
	for i, n := range p.Bounds {
		stages = append(stages, fmt.Sprintf("%d (%s)", n, render.Percent(plan.Stages[i])))
	}
	word := "would be"
	if started {
		word = "is"
	}
	t.Wrapped("", fmt.Sprintf("%s %s rolled out on %s of %s.", render.Name(plan.Service), word, render.Count(len(plan.Replicas), "replica"), render.Count(p.Hosts, "host")))
	facts := []render.Fact{
		{Name: "compared by", Text: fmt.Sprintf("%s (%s; %s)", p.Rollout.Indicator, p.Rollout.How, better)},
		{Name: "stages", Text: strings.Join(stages, ", ") + " replicas"},
		{Name: "widened", Text: "when more harm than " + render.Percent(plan.Margin) + " is excluded; to all when the gain is proven"},
		{Name: "takes", Text: fmt.Sprintf("%s to %s", render.Span(p.Time[0]), render.Span(p.Time[1]))},
		{Name: "fits", Text: p.Fit.Words() + " (estimated)"},
		{Name: "may gain", Text: gain},
	}
	if x, ok := p.Local.Get(); ok {
		facts = append(facts, render.Fact{Name: "local access ratio", Text: render.Percent(float64(x))})
	}
	if expected != nil {
		facts = append(facts, render.Fact{Name: "the model expects", Text: fmt.Sprintf("a gain of %s to %s of its latency (%s; %s): it %s", render.Percent(expected.Low), render.Percent(expected.High), expected.Verdict, expected.How, expected.Reason)})
	}
	if p.Without > 0 {
		facts = append(facts, render.Fact{Name: "left out", Text: render.Count(p.Without, "instance") + " without the indicator: bound at the end, with all others"})
	}
	t.Facts(facts, 24)
	if started {
		t.Wrapped("", "A running hub carries it on. 'homenode-hub deploy status "+render.Name(plan.Service)+"' shows it.")
	}
}

// RolloutsReport is what 'homenode-hub deploy status -o json' writes.
type RolloutsReport struct {
	Rollouts []RolloutReport `json:"rollouts"`
}

// RolloutReport is one rollout.
type RolloutReport struct {
	Service   string            `json:"service"`
	Indicator deploy.Indicator  `json:"indicator"`
	How       unit.Source       `json:"indicator_how"`
	Began     time.Time         `json:"began"`
	Phase     rollout.Phase     `json:"phase"`
	Stage     int               `json:"stage_number"` // from 1; 0 before
	Paused    bool              `json:"paused"`
	Vetoed    bool              `json:"vetoed"`
	Proven    bool              `json:"gain_proven"`
	Replicas  int               `json:"replica_count"`
	Bound     int               `json:"bound_count"`
	Observed  unit.Opt[int]     `json:"observed_bound_count"`
	Evidence  *rollout.Evidence `json:"shown,omitempty"` // now; nothing is decided by it
	Steps     []StepReport      `json:"rollout_steps"`
	Asked     []deploy.Asked    `json:"requests"`
	Told      deploy.Told       `json:"told"`
	Earlier   []deploy.Earlier  `json:"earlier"`
}

// StepReport is one step with its reason.
type StepReport struct {
	At       time.Time         `json:"at"`
	Code     rollout.Code      `json:"code"`
	Bound    int               `json:"bound_count"`
	Sentence string            `json:"sentence"`
	Evidence *rollout.Evidence `json:"shown,omitempty"`
}

func reportOfRollouts(all []deploy.Rollout) RolloutsReport {
	out := RolloutsReport{Rollouts: []RolloutReport{}}
	for _, r := range all {
		s := r.State
		one := RolloutReport{
			Service: r.Service(), Indicator: r.Indicator, How: r.How, Began: r.Began.UTC(), Phase: s.Phase, Stage: s.Stage + 1, Paused: s.Paused, Vetoed: r.Vetoed,
			Proven: s.Proven, Replicas: len(s.Plan.Replicas), Bound: s.BoundCount(), Observed: r.Observed, Steps: []StepReport{}, Asked: append([]deploy.Asked{}, r.Asked...), Told: r.Told,
			Earlier: append([]deploy.Earlier{}, r.Earlier...),
		}
		if e, ok := s.Evidence(); ok {
			one.Evidence = &e
		}
		for i, e := range s.Events {
			one.Steps = append(one.Steps, StepReport{At: r.Times[i], Code: e.Code, Bound: e.Bound, Sentence: r.Sentence(e), Evidence: e.Evidence})
		}
		out.Rollouts = append(out.Rollouts, one)
	}
	return out
}

func showRollouts(t *render.Terminal, all []deploy.Rollout) {
	if len(all) == 0 {
		t.Wrapped("", "There are no rollouts. 'homenode-hub deploy plan SERVICE' shows how one would go.")
		return
	}
	table := render.LeftTable("SERVICE", "STATE", "INDICATOR", "BEGAN", "LAST STEP")
	for _, r := range all {
		last := "none yet"
		if n := len(r.State.Events); n > 0 {
			last = string(r.State.Events[n-1].Code)
		}
		table.Rows = append(table.Rows, []string{render.Name(r.Service()), stateOf(r), string(r.Indicator), render.Date(r.Began), last})
	}
	t.Table(table)
}

func showRollout(t *render.Terminal, r deploy.Rollout) {
	t.Wrapped("", render.Name(r.Service())+": "+stateOf(r))
	facts := []render.Fact{{Name: "compared by", Text: fmt.Sprintf("%s (%s)", r.Indicator, r.How)}, {Name: "began", Text: render.Date(r.Began)}}
	if n, ok := r.Observed.Get(); ok {
		facts = append(facts, render.Fact{Name: "bound in the last bin", Text: strconv.Itoa(n)})
	}
	if e, ok := r.State.Evidence(); ok {
		facts = append(facts, render.Fact{Name: "shown now", Text: r.Shown(e)})
	}
	if r.Told.Problem != "" {
		facts = append(facts, render.Fact{Name: "webhook", Text: render.Printable(r.Told.Problem)})
	}
	t.Facts(facts, 24)
	for i, e := range r.State.Events {
		t.Wrapped("", render.Date(r.Times[i])+"  "+r.Sentence(e))
	}
	for _, a := range r.Asked {
		why := ""
		if a.Why != "" {
			why = ": " + render.Printable(a.Why)
		}
		t.Wrapped("", fmt.Sprintf("%s  %s by %s%s", render.Date(a.At), a.What, render.Name(a.By), why))
	}
	for _, e := range r.Earlier {
		t.Wrapped("", fmt.Sprintf("%s  an earlier one ended: %s, %s", render.Date(e.Ended), e.Phase, e.Code))
	}
}
