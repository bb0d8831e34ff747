// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/sim"

	"homenode/internal/sim/runner"
)

// book adds up a run, period after period.
//
//  1. A service is its replicas together: latencies are means weighted by operations,
//     ratios are ratios of sums.
//  2. P99 is the mean of the periods' and replicas' estimates, weighted likewise. It is
//     not the percentile of all requests together, which is higher on a day with a busy hour.
//  3. A series has at most MaxSamples, each over the same number of periods.
//  4. What was done is counted from the start of the run: policies bind in the warm-up,
//     and the cost of that must not be hidden in it.
type book struct {
	seed     uint64
	services map[string]*sums
	loads    map[string]*sums
	all      runner.Tally
	approved map[string]bool
	unbound  float64 // instance-seconds of approved workloads
	there    float64
	series   []Sample
	every    int // periods per sample
	sample   moment
	cpus     float64
	period   float64
}

// sums is what a service or a workload got.
type sums struct {
	runner.Tally
	service  string
	replicas map[string]bool
}

// moment is a sample in progress.
type moment struct {
	runner.Tally
	periods        int
	unbound, there float64 // instance-seconds of approved workloads
	lasts          float64 // seconds
}

func newBook(s *Setting, seed uint64) *book {
	periods := int(s.measures() / s.Period)
	b := &book{
		seed: seed, services: map[string]*sums{}, loads: map[string]*sums{}, approved: map[string]bool{},
		every: max(1, (periods+MaxSamples-1)/MaxSamples), cpus: float64(s.Host.OnlineCPUs().Len()), period: s.Period.Seconds(),
	}
	for _, spec := range s.Workloads {
		for _, id := range spec.IDs() {
			b.approved[id] = spec.Approved
		}
	}
	return b
}

// addPeriod adds one period, which ends at this time after the start.
func (b *book) addPeriod(end time.Duration, truth []sim.Truth, loop *runner.Loop) {
	for _, t := range truth {
		b.all.Add(&t)
		sumsOf(b.loads, t.Workload, t).Add(&t)
		sumsOf(b.services, t.Service, t).Add(&t)
		b.sample.Add(&t)
		if b.approved[t.Workload] {
			b.instance(t.Seconds, loop.Bound(t.Workload))
		}
	}
	b.sample.lasts += b.period
	if b.sample.periods++; b.sample.periods >= b.every {
		b.series = append(b.series, b.sample.done(end.Hours(), b.cpus))
		b.sample = moment{}
	}
}

func (b *book) instance(seconds float64, bound bool) {
	b.there += seconds
	b.sample.there += seconds
	if !bound {
		b.unbound += seconds
		b.sample.unbound += seconds
	}
}

func sumsOf(all map[string]*sums, name string, t sim.Truth) *sums {
	s := all[name]
	if s == nil {
		s = &sums{service: t.Service, replicas: map[string]bool{}}
		all[name] = s
	}
	s.replicas[t.Workload] = true
	return s
}

func (m moment) done(hour, cpus float64) Sample {
	return Sample{
		Hour: hour, Load: runner.Over(m.CPU, cpus*m.lasts), LatencyS: runner.Over(m.Latency, m.Requests),
		LocalRatio: m.LocalRatio(), Unbound: runner.Share(m.unbound, m.there),
	}
}

// run closes the book; counts are for the whole run. An incomplete sample is dropped.
func (b *book) run(counts runner.Counts) Run {
	r := Run{
		Seed: b.seed, Series: b.series, Binds: counts.Binds, Unbinds: counts.Unbinds, Refused: counts.Refused, MovedB: counts.Moved,
		UnbindRatio: runner.Share(b.unbound, b.there), LocalRatio: b.all.LocalRatio(), CPUSeconds: b.all.CPU,
	}
	for name, s := range b.services {
		r.Services = append(r.Services, Service{
			Name: name, Replicas: len(s.replicas), Ops: s.Ops, Asked: s.Asked, Dropped: s.Dropped,
			LatencyS: runner.Over(s.Latency, s.Ops), P99S: runner.Over(s.P99, s.Ops), CPUPerOp: s.CPUPerOp(),
			LocalRatio: s.LocalRatio(), IPC: s.IPC(), StalledS: s.Stalled,
		})
	}
	slices.SortFunc(r.Services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	for id, s := range b.loads {
		r.Workloads = append(r.Workloads, Workload{
			ID: id, Service: s.service, LocalRatio: s.LocalRatio(), LatencyS: runner.Over(s.Latency, s.Ops),
			CPUPerOp: s.CPUPerOp(), BoundShare: runner.Share(s.Bound, s.Seconds),
		})
	}
	slices.SortFunc(r.Workloads, func(a, b Workload) int { return cmp.Compare(a.ID, b.ID) })
	return r
}
