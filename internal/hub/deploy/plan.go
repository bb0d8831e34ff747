// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"homenode/internal/rollout"
	"homenode/internal/schema"
	"homenode/internal/store"
	"homenode/internal/unit"
)

// Asker is the part of a store that rollouts need.
type Asker interface {
	Ask(ctx context.Context, q store.Question) (store.Table, error)
}

// ErrPlan is wrapped where a service cannot be rolled out as it is.
var ErrPlan = errors.New("cannot be rolled out")

// Proposal is a rollout that has not begun, with what is known beforehand.
type Proposal struct {
	Rollout Rollout
	Without int                  // instances that do not show the indicator: they are bound at the end, with all others
	Gain    unit.Opt[unit.Ratio] // what binding may save of the CPU time, at most
	GainHow unit.Source          // of Gain
	Local   unit.Opt[unit.Ratio] // local access ratio
	Hosts   int                  // of its replicas
	Fit     Fit
	Bounds  []int            // replicas that are bound in each stage
	Time    [2]time.Duration // the shortest and the longest that it may take
}

// Options of a proposal. Zero values are the usual.
type Options struct {
	Indicator Indicator // "": latency
	Margin    float64
	Seed      uint64
	Bin       time.Duration
}

// Bounds of a bin: it is read two minutes after its end, and hosts follow orders for an hour.
const (
	leastBin = 5 * time.Minute
	mostBin  = time.Hour
)

// Propose plans a service's rollout from what its instances showed in the last hours.
func Propose(ctx context.Context, s Asker, service string, o Options, now time.Time) (Proposal, error) {
	refuse := func(format string, args ...any) (Proposal, error) {
		return Proposal{}, fmt.Errorf("%q %w: %s", service, ErrPlan, fmt.Sprintf(format, args...))
	}
	if service == "" || !utf8.ValidString(service) {
		return refuse("want the name of a service, as text")
	}
	if o.Indicator == "" {
		o.Indicator = Latency
	}
	plan := rollout.Usual(service, nil)
	if _, _, plan.LowerIsBetter = o.Indicator.column(); o.Margin != 0 {
		plan.Margin = o.Margin
	}
	if o.Seed != 0 {
		plan.Seed = o.Seed
	}
	if o.Bin != 0 {
		if o.Bin < leastBin || o.Bin > mostBin {
			return refuse("bins of %v: want %v to %v", o.Bin, leastBin, mostBin)
		}
		plan = plan.In(o.Bin)
	}
	seen, err := look(ctx, s, service, o.Indicator, now.Add(-time.Duration(plan.Before)*plan.Bin), now)
	if err != nil {
		return Proposal{}, err
	}
	p := Proposal{Rollout: Rollout{Schema: Schema, Indicator: o.Indicator, How: seen.how, Began: now.Truncate(time.Second)}}
	bound := map[string]bool{}
	for _, i := range seen.instances {
		if i.bound > 0 {
			bound[i.Host] = true
		}
		if !i.figure.Known() {
			p.Without++
			continue
		}
		plan.Replicas = append(plan.Replicas, i.Replica)
	}
	switch {
	case len(seen.instances) == 0:
		return refuse("none of its instances was seen in the last %v", time.Duration(plan.Before)*plan.Bin)
	case len(bound) > 0:
		return refuse("it was bound on %d hosts in the last %v, which leaves nothing to compare with: set 'approved: false' for it where its hosts' configuration approves it, and come back", len(bound), time.Duration(plan.Before)*plan.Bin)
	case p.Without > len(plan.Replicas):
		return refuse("%d of its %d instances do not show the indicator %q: name another with --indicator, or have their agents read it ('latency_file')", p.Without, len(seen.instances), o.Indicator)
	}
	if p.Rollout.State, err = rollout.Begin(plan); err != nil {
		return refuse("%v", err)
	}
	p.Bounds, p.Hosts = plan.Counts(), plan.HostCount()
	p.Time[0] = time.Duration(plan.Before+len(plan.Stages)*max(plan.Least, plan.Washout+1)) * plan.Bin
	p.Time[1] = time.Duration(plan.Before+len(plan.Stages)*plan.Longest) * plan.Bin
	if p.Fit, err = fitOf(ctx, s, service, seen.hosts(), now); err != nil {
		return p, err
	}
	return p, p.addGain(ctx, s, now)
}

// addGain adds what the status database says of the gain. It says nothing of a service that is not
// there any more.
func (p *Proposal) addGain(ctx context.Context, s Asker, now time.Time) error {
	t, err := s.Ask(ctx, store.Question{Topic: store.Gain, Service: p.Rollout.Service(), From: now.Add(-24 * time.Hour), Until: now, Most: 1})
	if err != nil || len(t.Rows) == 0 {
		return err
	}
	row := t.Rows[0]
	if x, ok := t.Number(row, "saved_ratio"); ok {
		p.Gain, p.GainHow = unit.Some(unit.Ratio(x)), sourceOf(t, row, "saved_how")
	}
	if x, ok := t.Number(row, "local_ratio"); ok {
		p.Local = unit.Some(unit.Ratio(x))
	}
	return nil
}

// instance is what one workload of a service showed.
type instance struct {
	rollout.Replica
	host   string // as the store has it
	figure unit.Opt[float64]
	bound  float64 // share of the time
}

// seen is what the instances of a service showed.
type seen struct {
	instances []instance
	how       unit.Source
}

func (s seen) hosts() (all []string) {
	for _, i := range s.instances {
		all = append(all, i.host)
	}
	return all
}

// look asks for one time of a service.
func look(ctx context.Context, s Asker, service string, i Indicator, from, until time.Time) (seen, error) {
	t, err := s.Ask(ctx, store.Question{Topic: store.Instances, Service: service, From: from, Until: until, Most: store.MostRows})
	if err != nil {
		return seen{}, fmt.Errorf("ask for the instances of %q: %w", service, err)
	}
	if t.More {
		return seen{}, fmt.Errorf("%q %w: it has more than %d instances", service, ErrPlan, store.MostRows)
	}
	figure, how, _ := i.column()
	var out seen
	known := []unit.Source{}
	for _, row := range t.Rows {
		x := instance{host: t.Text(row, "host"), Replica: rollout.Replica{Host: schema.Name(t.Text(row, "host")), Workload: schema.Name(t.Text(row, "workload"))}, figure: unit.OptOf(t.Number(row, figure))}
		x.bound, _ = t.Number(row, "bound_ratio") // unknown: it is not
		if x.figure.Known() {
			known = append(known, sourceOf(t, row, how))
		}
		out.instances = append(out.instances, x)
	}
	out.how = unit.WeakestKnown(known...)
	return out, nil
}

// sourceOf is how a figure is known, which tables have as a word.
func sourceOf(t store.Table, row []any, name string) unit.Source {
	s, err := unit.ParseSource(t.Text(row, name))
	if err != nil {
		return unit.HowUnknown
	}
	return s
}
