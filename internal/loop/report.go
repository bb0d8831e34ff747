// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"errors"
	"fmt"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/model/gain"
	"homenode/internal/rollout"
	"homenode/internal/unit"
)

// Schema is the version of Report.
const Schema = 1

// Report is what a run came to. All of it is modelled.
type Report struct {
	Schema      int                `json:"schema"`
	Machine     string             `json:"machine"`
	Hosts       int                `json:"host_count"`
	Seed        uint64             `json:"seed"`
	Took        time.Duration      `json:"simulated_ns"`
	Fault       Fault              `json:"fault"`
	Sensitivity sensitivity.Report `json:"sensitivity"`
	Services    []Outcome          `json:"services"` // as Sensitivity ranks them
	// Rows are what the next model learns from the rollouts.
	Rows     []gain.Row `json:"-"`
	RowCount int        `json:"training_row_count"`
}

// Outcome is what became of one service.
type Outcome struct {
	Service   string              `json:"service"`
	Verdict   sensitivity.Verdict `json:"judgement"`
	Predicted [3]float64          `json:"predicted_gain_low_high_ratios"`
	// Phase is how its rollout ended; "": none was begun.
	Phase  rollout.Phase     `json:"phase"`
	Proven bool              `json:"gain_proven"`
	Shown  *rollout.Evidence `json:"shown,omitempty"` // when the gain was proven, or at the last look
	Steps  []Step            `json:"steps"`
	// Gains against a fleet in which nothing was ever bound, over the last hour: with the loop, and
	// where everything was bound unconditionally.
	Gain  unit.Opt[float64] `json:"gain_ratio"`
	Blind unit.Opt[float64] `json:"blind_gain_ratio"`
}

func (o Outcome) proven() bool { return o.Phase == rollout.Done && o.Proven }
func (o Outcome) undone() bool { return o.Phase == rollout.RolledBack }
func (o Outcome) left() bool   { return o.Phase == "" }

// spared says that binding would have hurt it, and that it was left alone.
func (o Outcome) spared() bool { return o.left() && o.Blind.Or(0) < 0 }

// Step is one of a rollout.
type Step struct {
	After    time.Duration `json:"after_ns"` // the start of the run
	Bound    int           `json:"bound_count"`
	Sentence string        `json:"sentence"`
}

func (r *Report) fill(x *run, all []deploy.Rollout) {
	r.Schema, r.Machine, r.Hosts, r.Seed, r.Fault = Schema, x.c.Machine.Origin, x.c.Hosts, x.c.Seed, x.c.Fault
	r.Took = x.now.Sub(x.c.Start)
	r.Services = []Outcome{}
	for _, s := range r.Sensitivity.Services {
		o := Outcome{Service: s.Service, Verdict: s.Verdict, Predicted: [3]float64{s.Gain, s.Low, s.High}, Steps: []Step{}}
		o.Gain, o.Blind = x.gain(looped, s.Service), x.gain(blind, s.Service)
		for _, one := range all {
			if one.Service() == s.Service {
				o.rollout(one, x.c.Start)
			}
		}
		r.Services = append(r.Services, o)
	}
}

func (o *Outcome) rollout(x deploy.Rollout, start time.Time) {
	o.Phase, o.Proven = x.State.Phase, x.State.Proven
	if e, ok := x.Compared(); ok {
		o.Shown = e.Evidence
	}
	for i, e := range x.State.Events {
		o.Steps = append(o.Steps, Step{x.Times[i].Sub(start), e.Bound, x.Sentence(e)})
	}
}

// gain of a fleet against the one in which nothing was bound.
func (r *run) gain(f int, service string) unit.Opt[float64] {
	a, b := r.latencies[f][service], r.latencies[control][service]
	if a == nil || b == nil || a.n == 0 || b.n == 0 || b.sum == 0 {
		return unit.None[float64]()
	}
	return unit.Some(1 - (a.sum/a.n)/(b.sum/b.n))
}

// Check says what a demonstration must show and this run does not.
func (r Report) Check() error {
	var gained, spared, back bool
	for _, o := range r.Services {
		gained = gained || o.proven() && o.Gain.Or(0) > 0
		spared = spared || o.spared()
		back = back || o.undone() && o.Service == r.Fault.Service
	}
	var missing []error
	for _, m := range []struct {
		ok   bool
		what string
	}{
		{gained, "no service was bound with a proven gain"},
		{spared, "no service that binding would have hurt was left alone"},
		{back, fmt.Sprintf("the fault of %q was not rolled back", r.Fault.Service)},
		{r.RowCount > 0, "no rollout became a row of training"},
	} {
		if !m.ok {
			missing = append(missing, errors.New(m.what))
		}
	}
	return errors.Join(missing...)
}
