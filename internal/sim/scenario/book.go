// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/arm"
)

// book adds up a run, period after period.
//
//  1. Services are their replicas together: latencies are means weighted by
//     operations, ratios are of sums.
//  2. P99 is the mean of the periods' and replicas' estimates, weighted likewise. It is
//     not the percentile of all requests together: that of a day with a busy hour is
//     higher.
//  3. A series has at most MaxSamples: each is of as many periods.
//  4. What was done is counted from the start of the run: policies bind in the warm-up,
//     and what that cost must not be hidden in it.
type book struct {
	seed     uint64
	services map[string]*sums
	loads    map[string]*sums
	all      sums
	approved map[string]bool
	unbound  float64 // instance-seconds of approved workloads
	there    float64
	series   []Sample
	every    int // periods of a sample
	sample   moment
	cpus     float64
	period   float64
}

// sums is what sim.Truth adds up to.
type sums struct {
	service                       string
	replicas                      map[string]bool
	ops, asked, dropped           float64
	latency, p99                  float64 // times operations
	cpu, cycles, instructions     float64
	local, remote, stalled, bound float64
	seconds                       float64
}

// moment is a sample in the making.
type moment struct {
	periods                 int
	cpu, latency, ops       float64
	local, remote           float64
	unbound, there, seconds float64
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

// add is one period, which ends so long after the start.
func (b *book) add(end time.Duration, truth []sim.Truth, loop *arm.Loop) {
	for _, t := range truth {
		b.all.add(t)
		sumsOf(b.loads, t.Workload, t).add(t)
		sumsOf(b.services, t.Service, t).add(t)
		b.sample.add(t)
		if b.approved[t.Workload] {
			b.instance(t.Seconds, loop.Bound(t.Workload))
		}
	}
	b.sample.seconds += b.period
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

func (s *sums) add(t sim.Truth) {
	s.seconds += t.Seconds
	s.ops += t.Ops
	s.asked += t.Asked
	s.dropped += t.Dropped
	s.latency += float64(t.Latency * t.Ops)
	s.p99 += float64(t.P99 * t.Ops)
	s.cpu += t.CPUSeconds
	s.cycles += t.Cycles
	s.instructions += t.Instructions
	s.local += t.Local
	s.remote += t.Remote
	s.stalled += t.Stalled
	s.bound += t.BoundSeconds
}

func (m *moment) add(t sim.Truth) {
	m.cpu += t.CPUSeconds
	if t.Latency > 0 {
		m.latency += float64(t.Latency * t.Ops)
		m.ops += t.Ops
	}
	m.local += t.Local
	m.remote += t.Remote
}

func (m moment) done(hour, cpus float64) Sample {
	return Sample{
		Hour: hour, Load: over(m.cpu, float64(cpus*m.seconds)), LatencyS: over(m.latency, m.ops),
		LocalRatio: share(m.local, m.local+m.remote), Unbound: share(m.unbound, m.there),
	}
}

// over is 0 where there is nothing to divide by.
func over(part, whole float64) float64 {
	if !(whole > 0) {
		return 0
	}
	return part / whole
}

// share is over, where rounding does not make more than all of it.
func share(part, whole float64) float64 { return max(0, min(1, over(part, whole))) }

// run closes the book; counts are of the whole run. A sample that is not full yet is dropped.
func (b *book) run(counts arm.Counts) Run {
	r := Run{
		Seed: b.seed, Series: b.series, Binds: counts.Binds, Unbinds: counts.Unbinds, Refused: counts.Refused, MovedB: counts.Moved,
		UnbindRatio: share(b.unbound, b.there), LocalRatio: share(b.all.local, b.all.local+b.all.remote), CPUSeconds: b.all.cpu,
	}
	for name, s := range b.services {
		r.Services = append(r.Services, Service{
			Name: name, Replicas: len(s.replicas), Ops: s.ops, Asked: s.asked, Dropped: s.dropped,
			LatencyS: over(s.latency, s.ops), P99S: over(s.p99, s.ops), CPUPerOp: over(s.cpu, s.ops),
			LocalRatio: share(s.local, s.local+s.remote), IPC: over(s.instructions, s.cycles), StalledS: s.stalled,
		})
	}
	slices.SortFunc(r.Services, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	for id, s := range b.loads {
		r.Workloads = append(r.Workloads, Workload{
			ID: id, Service: s.service, LocalRatio: share(s.local, s.local+s.remote), LatencyS: over(s.latency, s.ops),
			CPUPerOp: over(s.cpu, s.ops), BoundShare: share(s.bound, s.seconds),
		})
	}
	slices.SortFunc(r.Workloads, func(a, b Workload) int { return cmp.Compare(a.ID, b.ID) })
	return r
}
