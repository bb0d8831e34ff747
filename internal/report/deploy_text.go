// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"time"

	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// DeploymentReport is one deployment, and what its steps say.
type DeploymentReport struct {
	Deployment profiling.Deployment `json:"deployment"`
	Sentences  []string             `json:"sentences"` // of deploy_steps, in their order
}

// DeploymentsReport is what 'homenode deploy' writes.
type DeploymentsReport struct {
	Schema      int                `json:"schema"`
	Deployments []DeploymentReport `json:"deployments"`
	Notes       []string           `json:"notes"`
}

// NewDeploymentsReport is of these deployments.
func NewDeploymentsReport(all []profiling.Deployment, notes ...string) DeploymentsReport {
	r := DeploymentsReport{Schema: 1, Deployments: []DeploymentReport{}, Notes: append([]string{}, notes...)}
	for _, d := range all {
		one := DeploymentReport{Deployment: d, Sentences: []string{}}
		for _, e := range d.Events {
			one.Sentences = append(one.Sentences, DeploySentence(d, e))
		}
		r.Deployments = append(r.Deployments, one)
	}
	return r
}

// Deployments prints each deployment with its steps.
func Deployments(w io.Writer, r DeploymentsReport, o render.TextOptions) error {
	out := o.Terminal()
	if len(r.Deployments) == 0 {
		out.Wrapped("", "There are no deployments. 'homenode deploy plan SERVICE' shows how one would go.")
	}
	for i, one := range r.Deployments {
		if i > 0 {
			out.Line("")
		}
		d := one.Deployment
		out.Wrapped("", fmt.Sprintf("%s: %s; %d of %s tried, by %s.", render.Name(d.Service), deployPhase[d.Phase], len(d.Trials), render.Count(len(d.Replicas), "replica"), render.Printable(d.Job.Metric.String())))
		for k, e := range d.Events {
			out.Wrapped("", render.Date(e.At)+"  "+one.Sentences[k])
		}
	}
	for _, n := range r.Notes {
		out.Wrapped("", render.Printable(n))
	}
	return out.Flush(w, "deployments")
}

var deployPhase = map[profiling.DeployPhase]string{
	profiling.Trying: "under way", profiling.Kept: "deployed: the agent may bind it", profiling.RolledBack: "rolled back: the agent may not bind it",
}

// DeploySentence says what happened, and by which evidence.
func DeploySentence(d profiling.Deployment, e profiling.DeployEvent) string {
	margin := render.Percent(d.Margin)
	text := map[profiling.DeployCode]string{
		profiling.DeployStarts:   "it starts",
		profiling.DeployProven:   "the first replica gains",
		profiling.DeployWidens:   "harm of more than " + margin + " is excluded for one more replica",
		profiling.DeployComplete: "all replicas were tried: the service is approved",
		profiling.DeployHarm:     "rolled back: binding does harm",
		profiling.DeployNoGain:   "rolled back: the first replica did not show a gain of " + render.Percent(d.Least) + " or more",
		profiling.DeployNotSafe:  "rolled back: harm of more than " + margin + " was not excluded",
		profiling.DeployConstant: "rolled back: the metric is the same in all measurements, so it measures nothing",
		profiling.DeployNewUnit:  "rolled back: the metric jumped by a factor of 100 or more, as if its unit had changed",
		profiling.DeployGone:     "rolled back: a replica ended",
		profiling.DeployOperator: "rolled back: it was asked for",
	}[e.Code]
	text = render.Or(text, string(e.Code))
	if t := e.Trial; t != nil {
		text += " (" + trialShown(*t) + ")"
	}
	if e.Why != "" {
		text += ": " + render.Printable(e.Why)
	}
	return text
}

// trialShown is "/shop/a on node 1: 12.9% less time, 95.0% interval: 10.0% less to 15.0% less; measured".
func trialShown(t profiling.DeployTrial) string {
	v, ok := t.Gain.Value.Get()
	if !ok {
		return fmt.Sprintf("%s on %s: nothing was shown; %s", render.Name(t.Workload), nodesText(t.Nodes), render.How(t.How))
	}
	return fmt.Sprintf("%s on %s: an operation takes %s time%s; %s", render.Name(t.Workload), nodesText(t.Nodes), lessOrMore(v), within(t.Gain.CI), render.How(t.How))
}

// DeploymentPlan is what 'homenode deploy plan' writes.
type DeploymentPlan struct {
	Schema   int                     `json:"schema"`
	Service  string                  `json:"service"`
	Least    float64                 `json:"least_ratio"`
	Margin   float64                 `json:"margin_ratio"`
	Tried    int                     `json:"tried_count"`
	Left     unit.Opt[time.Duration] `json:"left_ns"` // unknown where one trial's is
	Replicas []profiling.TrialReport `json:"trial_plans"`
}

// NewDeploymentPlan is of what the trials would be.
func NewDeploymentPlan(d profiling.Deployment, all []profiling.TrialReport) DeploymentPlan {
	p := DeploymentPlan{Schema: 1, Service: d.Service, Least: d.Least, Margin: d.Margin, Tried: len(d.Trials), Replicas: append([]profiling.TrialReport{}, all...)}
	left, known := 0.0, true
	for _, r := range all {
		x, ok := r.Left.Get()
		left, known = left+x, known && ok
	}
	p.Left = unit.OptOf(time.Duration(left*float64(time.Second)), known)
	return p
}

// DeploymentPlanned prints a plan.
func DeploymentPlanned(w io.Writer, p DeploymentPlan, o render.TextOptions) error {
	out := o.Terminal()
	out.Wrapped("", fmt.Sprintf("Dry run: nothing is changed. %s of %s would be tried one after the other, bound and unbound by turns.", render.Count(len(p.Replicas), "replica"), render.Name(p.Service)))
	out.Line("")
	t := render.LeftTable("REPLICA", "BOUND TO", "CHOSEN BY")
	for _, r := range p.Replicas {
		t.Rows = append(t.Rows, []string{render.Name(r.Job.Workload), nodesText(r.Nodes), r.Why})
	}
	out.Table(t)
	out.Line("")
	out.Wrapped("", fmt.Sprintf("The first must show a gain of %s or more, the others exclude harm of more than %s. Then the service is approved, and the agent binds it. Otherwise everything is as it was.", render.Percent(p.Least), render.Percent(p.Margin)))
	if left, ok := p.Left.Get(); ok {
		out.Wrapped("", fmt.Sprintf("It takes about %s (estimated).", render.Span(left.Round(time.Second))))
	} else {
		out.Wrapped("", "How long it takes is unknown.")
	}
	return out.Flush(w, "plan")
}
