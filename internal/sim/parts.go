// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// What a world of another kind (sim/threads) has in common with this one.

// KernelShare of a node's memory is the kernel's own.
const KernelShare = kernelShare

// GrowthLimit is up to which multiple of the start's anonymous memory grows.
const GrowthLimit = growthLimit

// NoOwner is the owner of a cgroup that nobody manages.
const NoOwner = noOwner

// Validate says what of it cannot be.
func (c Config) Validate() error { return c.validate() }

// Count is how many workloads the spec is, one a replica.
func (s *Spec) Count() int { return s.replicas() }

// ID is a replica's.
func (s *Spec) ID(replica int) string { return s.id(replica) }

// Works is an operation in each phase; of one without phases the only one.
func (s *Spec) Works() []memsys.Work { return worksOf(s) }

// Straggle is how much longer the slowest of its threads takes to a barrier than the
// mean one.
func (s *Spec) Straggle() float64 { return s.straggle() }

// Zonelist is the order in which allocations try nodes (linux.Host).
func Zonelist(m machine.Machine) [][]int { return zonelist(m) }

// PagesOf is whole pages that have room for so much (linux.BytesOf: and back).
func PagesOf(b unit.Bytes) float64 { return pagesOf(b) }

// Requests is the demand of one workload and the queue of its requests, for a world
// that gives out CPU time its own way. Call Ask, then Admit, then Serve in each step.
type Requests struct {
	asking
	clock clock
	q     station
}

// NewRequests begins when the workload comes.
func NewRequests(c Config, s *Spec, id string, now time.Duration) *Requests {
	r := &Requests{asking: asking{spec: s}, clock: clock{midnight: sinceMidnight(c.Start)}}
	r.noise.start(c.Seed, id, s.Demand.Noise, now)
	return r
}

// Demand is what is asked in a step.
type Demand struct {
	Closed bool
	Asked  float64 // requests that come
	Duty   float64 // of a closed loop: share of its threads that are in it
	Phase  int
	Still  float64 // seconds that it stands still
}

// Stop lets it stand still for so many seconds from the next step on, in stops of call.
func (r *Requests) Stop(seconds, call float64) {
	r.stop(seconds, call)
}

// Ask is the demand of the step from now on.
func (r *Requests) Ask(now, step time.Duration) Demand {
	r.ask(&r.clock, now, step)
	d := &r.now
	return Demand{Closed: d.closed, Asked: d.asked, Duty: d.duty, Phase: d.phase, Still: d.still}
}

// Admit finds what a full queue refuses of the step's requests: an operation takes
// service seconds, on so many CPUs at once.
func (r *Requests) Admit(dt, service, servers float64) {
	r.q = station{}
	r.refused = 0
	if !r.now.closed {
		d := &r.spec.Demand
		r.q = station{service: service, servers: max(few, servers), work: orOne(d.Spread)}
		r.q.varies = (orOne(d.Bursts) + r.q.work) / 2
		r.q = r.q.whole()
		r.refuse(&r.q, dt)
	}
}

// Wanted is how many operations there are to do in the step.
func (r *Requests) Wanted(dt float64) float64 {
	return float64(r.now.asked*(1-r.refused)) + r.queue
}

// Served is what became of a step's requests.
type Served struct {
	Asked, Dropped float64
	Latency        float64 // requests × seconds
}

// Serve is so many operations done in the step.
func (r *Requests) Serve(dt, ops float64) Served {
	c := counts{ops: ops}
	r.serve(dt, r.q, &c)
	return Served{Asked: c.asked, Dropped: c.dropped, Latency: c.latency}
}

// Waiting are requests that wait for CPU time; Drop forgets them.
func (r *Requests) Waiting() float64 { return r.queue }

// Drop forgets those who wait.
func (r *Requests) Drop() { r.queue = 0 }

// P99 is the 99th percentile of the latency of all requests since the last call.
func (r *Requests) P99() float64 {
	p := r.tail.p99()
	r.tail.filled = 0
	return p
}

// CyclesAlone is what an operation costs on a node before anything ran: all its misses
// are local.
func CyclesAlone(sys *memsys.System, work *memsys.Work, node int) float64 {
	cycles := work.Cycles
	for _, r := range work.Regions {
		cycles += float64(r.Accesses * sys.Latency[node][node] / r.Parallelism)
	}
	return max(1, cycles)
}

// PrivateShare is of a workload's accesses, those to private memory. Where its regions
// are of both kinds and nobody said, mixed, it is a guess, that the first Solve corrects
// (memsys.Solver.OwnReads): by accesses, and how little of a region fits into an LLC.
func PrivateShare(sys *memsys.System, s *Spec, work *memsys.Work) (share float64, mixed bool) {
	m := &s.Memory
	switch {
	case m.Shared == 0 && m.Files == 0:
		return 1, false
	case m.Private == 0:
		return 0, false
	case m.PrivateAccesses != nil && *m.PrivateAccesses >= 0:
		return *m.PrivateAccesses, false
	}
	llc, own, all := 0.0, 0.0, 0.0
	for _, d := range sys.Domains {
		llc = max(llc, d.LLC)
	}
	for _, r := range work.Regions {
		reads := float64(r.Accesses * (r.Bytes / (r.Bytes + llc)))
		all += reads
		if !r.Shared {
			own += reads
		}
	}
	if all == 0 { // it reads nothing, but for the lines it adds to: they are shared
		return 0, false
	}
	return own / all, own > 0 && own < all
}

// Wakes is how often one of its threads wakes up an operation.
func (s *Spec) Wakes() float64 {
	switch d := &s.Demand; {
	case d.Wakes >= 0:
		return d.Wakes
	case d.Rate > 0:
		return 1
	}
	return 0
}

// Domains is the domain of memsys.System by CPU id, of each online CPU (-1: none). Where
// the machine's last-level caches are not known to be the domains, a node's CPUs are
// dealt out in their order.
func (c Config) Domains() []int {
	var of []int
	for _, p := range placesOf(c) {
		k, used := 0, 0.0
		for id := range p.cpus.All() {
			for len(of) <= id {
				of = append(of, -1)
			}
			for k+1 < len(p.domains) && used >= c.System.Domains[p.domains[k]].CPUs {
				k, used = k+1, 0
			}
			if used++; len(p.domains) > 0 {
				of[id] = p.domains[k]
			}
			for i, s := range p.sets {
				if s.Has(id) {
					of[id] = p.domains[i]
				}
			}
		}
	}
	return of
}
