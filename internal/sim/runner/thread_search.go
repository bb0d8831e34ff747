// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

// ThreadJob is a workload whose threads are placed one by one.
type ThreadJob struct {
	Spec *sim.Spec
	// Private[t] is where thread t's own memory is, Shared where the memory of all threads
	// is: shares of nodes. Neither moves.
	Private [][]float64
	Shared  []float64
}

// threadOracle computes the worth of placements of threads, from what no policy knows.
//
//  1. A domain has no more threads than CPUs. If there are more threads than CPUs in
//     total, none has more than its part of them, rounded up.
//  2. Threads of a workload with the same memory are alike: only their number in each
//     domain counts. One Load each.
//  3. A workload with barriers does as much as its slowest thread. The traffic of the
//     others is then smaller, so this is solved twice.
//  4. The score is the mean logarithm of operations per second, weighted by threads: a
//     tenth faster is worth the same to all.
type threadOracle struct {
	sys     *memsys.System
	solver  memsys.Solver
	jobs    []ThreadJob
	works   []memsys.Work
	threads []oneThread
	kinds   []kind
	room    []int // threads that a domain may have
	// Memory of Score.
	count  []int // [kind × domains + domain]
	used   []int // by domain
	loads  []memsys.Load
	of     []int // load → job
	scored int   // loads solved since climb began
}

// oneThread is a thread and its kind; threads of one kind are alike.
type oneThread struct{ job, kind int }

type kind struct {
	job  int
	home []float64 // distribution of its DRAM accesses
	near int       // the node that has most of them
}

func newThreadOracle(sys *memsys.System, jobs []ThreadJob) *threadOracle {
	o := &threadOracle{sys: sys, jobs: jobs, used: make([]int, len(sys.Domains))}
	for j := range jobs {
		o.works = append(o.works, jobs[j].Spec.Work.In(sim.PhaseSpec{}))
		private, _ := sim.PrivateShare(sys, jobs[j].Spec, &o.works[j])
		for _, own := range jobs[j].Private {
			home := make([]float64, len(sys.Nodes))
			for m := range home {
				home[m] = private*own[m] + (1-private)*jobs[j].Shared[m]
			}
			o.threads = append(o.threads, oneThread{j, o.kindOf(j, home)})
		}
	}
	o.count = make([]int, len(o.kinds)*len(sys.Domains))
	all := 0.0
	for _, d := range sys.Domains {
		all += d.CPUs
	}
	crowd := max(1, float64(len(o.threads))/max(1, all))
	for _, d := range sys.Domains {
		o.room = append(o.room, int(math.Ceil(d.CPUs*crowd-1e-9)))
	}
	return o
}

func (o *threadOracle) kindOf(job int, home []float64) int {
	k := slices.IndexFunc(o.kinds, func(k kind) bool { return k.job == job && slices.Equal(k.home, home) })
	if k >= 0 {
		return k
	}
	near := 0
	for m, share := range home {
		if share > home[near] {
			near = m
		}
	}
	o.kinds = append(o.kinds, kind{job, home, near})
	return len(o.kinds) - 1
}

// Score takes a domain for each thread, one bit in each.
func (o *threadOracle) Score(p Placement) float64 {
	clear(o.count)
	clear(o.used)
	n := len(o.sys.Domains)
	for i, t := range o.threads {
		d := firstOf(p[i])
		o.count[t.kind*n+d]++
		if o.used[d]++; o.used[d] > o.room[d] {
			return math.Inf(-1) // 1
		}
	}
	o.makeLoads()
	o.scored += len(o.loads)
	res := o.solver.Solve(o.sys, o.loads)
	if o.hold(res) {
		res = o.solver.Solve(o.sys, o.loads)
	}
	return o.worth(res)
}

// makeLoads is number 2.
func (o *threadOracle) makeLoads() {
	o.loads, o.of = o.loads[:0], o.of[:0]
	n := len(o.sys.Domains)
	for k := range o.kinds {
		job := o.kinds[k].job
		for d := range n {
			threads := float64(o.count[k*n+d])
			if threads == 0 {
				continue
			}
			cpus := threads * min(1, o.sys.Domains[d].CPUs/float64(o.used[d]))
			if limit := o.jobs[job].Spec.CPULimit; limit > 0 {
				cpus = min(cpus, limit*threads/float64(len(o.jobs[job].Private)))
			}
			o.loads = append(o.loads, memsys.Load{
				Workload: job, Domain: d, CPUs: cpus, Threads: threads, Ops: o.asked(job, threads), Work: &o.works[job],
				Home: o.kinds[k].home, Shared: o.jobs[job].Shared, Slow: 1,
			})
			o.of = append(o.of, job)
		}
	}
}

// asked is the rate in proportion to threads; without a rate, as much as they can do.
func (o *threadOracle) asked(job int, threads float64) float64 {
	if rate := o.jobs[job].Spec.Demand.Rate; rate > 0 {
		return rate * threads / float64(len(o.jobs[job].Private))
	}
	return math.Inf(1)
}

// hold is number 3. It reports whether any workload has barriers.
func (o *threadOracle) hold(res *memsys.Result) bool {
	any := false
	for j := range o.jobs {
		if o.jobs[j].Spec.Work.Barrier == 0 {
			continue
		}
		any = true
		pace := math.Inf(1)
		for i, of := range o.of {
			if of == j {
				pace = min(pace, res.Loads[i].Ops/o.loads[i].Threads)
			}
		}
		for i, of := range o.of {
			if of == j {
				o.loads[i].Ops = pace * o.loads[i].Threads
			}
		}
	}
	return any
}

// worth is number 4.
func (o *threadOracle) worth(res *memsys.Result) float64 {
	score := 0.0
	for j := range o.jobs {
		ops, slowest := 0.0, math.Inf(1)
		for i, of := range o.of {
			if of == j {
				ops += res.Loads[i].Ops
				slowest = min(slowest, res.Loads[i].Ops/o.loads[i].Threads)
			}
		}
		threads := float64(len(o.jobs[j].Private))
		if o.jobs[j].Spec.Work.Barrier > 0 {
			ops = slowest * threads
		}
		score += threads * detmath.Log(ops)
	}
	return score / max(1, float64(len(o.threads)))
}

// Choices are all domains for each thread.
func (o *threadOracle) Choices() [][]Nodes {
	var all []Nodes
	for d := range o.sys.Domains {
		if o.sys.Domains[d].CPUs > 0 {
			all = append(all, 1<<d)
		}
	}
	choices := make([][]Nodes, len(o.threads))
	for i := range choices {
		choices[i] = all
	}
	return choices
}

// Weights are equal: the first in order are placed first.
func (o *threadOracle) Weights() []float64 { return make([]float64, len(o.threads)) }

func firstOf(n Nodes) int {
	for d := range 64 {
		if n.has(d) {
			return d
		}
	}
	return 0
}

const (
	// mostScored bounds climb, in loads solved over all scores: some seconds. Threads that
	// are alike are one load. A larger bound finds more.
	mostScored = 60_000
	// mostDomains is the number of domains up to which climb tries all of them for each
	// thread.
	mostDomains = 8
)

// SearchThreads is the domain of each thread, job by job: the best of all placements where
// there are few (Search); else the best result of climbing from three starts. A start:
//
//  1. Each thread where its memory is, or as near as there is room.
//  2. Each job together, where most of its memory is, or as near as there is room.
//  3. Threads dealt round the domains, one each.
//
// Climbing tries single moves and swaps of unlike threads, round after round, until none
// scores better or mostScored is used up. Where there are many domains, a thread is tried
// near its memory and where others of its job are.
func SearchThreads(sys *memsys.System, jobs []ThreadJob) []int {
	o := newThreadOracle(sys, jobs)
	if len(o.threads) == 0 {
		return nil
	}
	var best Placement
	if choices := o.Choices(); product(choices) <= mostTried {
		best = exhaust(o, choices)
	} else {
		most := math.Inf(-1)
		for _, start := range []Placement{o.nearMemory(), o.together(), o.around()} {
			if score := o.Score(start); score > most+better || best == nil {
				best, most = start, score
			}
		}
		o.climb(best)
	}
	places := make([]int, len(best))
	for i, n := range best {
		places[i] = firstOf(n)
	}
	return places
}

func (o *threadOracle) nearMemory() Placement {
	return o.fill(func(i int) int { return o.kinds[o.threads[i].kind].near })
}

func (o *threadOracle) together() Placement {
	near := make([]int, len(o.jobs))
	for j := range near {
		home := make([]float64, len(o.sys.Nodes))
		for i := range o.threads {
			if o.threads[i].job == j {
				for m, share := range o.kinds[o.threads[i].kind].home {
					home[m] += share
				}
			}
		}
		for m := range home {
			if home[m] > home[near[j]] {
				near[j] = m
			}
		}
	}
	return o.fill(func(i int) int { return near[o.threads[i].job] })
}

func (o *threadOracle) around() Placement {
	return o.fill(func(i int) int { return o.sys.Domains[i%len(o.sys.Domains)].Node })
}

// fill puts each thread into the nearest domain to a node that has room; of equally near
// ones, into the one with most room.
func (o *threadOracle) fill(node func(i int) int) Placement {
	left := slices.Clone(o.room)
	p := make(Placement, len(o.threads))
	for i := range p {
		from, best := node(i), -1
		for d, dom := range o.sys.Domains {
			if left[d] <= 0 {
				continue
			}
			if best < 0 || cmp.Or(cmp.Compare(o.sys.Latency[dom.Node][from], o.sys.Latency[o.sys.Domains[best].Node][from]), left[best]-left[d]) < 0 {
				best = d
			}
		}
		left[best]--
		p[i] = 1 << best
	}
	return p
}

// climb improves a placement, one move or swap after the other.
func (o *threadOracle) climb(p Placement) {
	o.scored = 0
	most := o.Score(p)
	for again := true; again && o.scored < mostScored; {
		again = false
		for i := range p {
			if o.climbThread(p, i, &most) {
				again = true
			}
		}
	}
}

// climbThread moves thread i to each other domain, or swaps it with one of each other kind
// there, as long as that is better.
func (o *threadOracle) climbThread(p Placement, i int, most *float64) bool {
	any := false
	for _, d := range o.candidates(p, i) {
		if p[i] == 1<<d || o.scored >= mostScored {
			continue
		}
		from := p[i]
		p[i] = 1 << d
		if score := o.Score(p); score > *most+better {
			*most, any = score, true
			continue
		}
		p[i] = from
		any = o.swap(p, i, d, most) || any
	}
	return any
}

// candidates are the domains to try for a thread.
func (o *threadOracle) candidates(p Placement, i int) []int {
	var all []int
	for d := range o.sys.Domains {
		all = append(all, d)
	}
	if len(all) <= mostDomains {
		return all
	}
	near := o.kinds[o.threads[i].kind].near
	slices.SortStableFunc(all, func(a, b int) int {
		return cmp.Compare(o.sys.Latency[o.sys.Domains[a].Node][near], o.sys.Latency[o.sys.Domains[b].Node][near])
	})
	some := slices.Clone(all[:mostDomains/2])
	for j := range p {
		if d := firstOf(p[j]); o.threads[j].job == o.threads[i].job && len(some) < mostDomains && !slices.Contains(some, d) {
			some = append(some, d)
		}
	}
	return some
}

func (o *threadOracle) swap(p Placement, i, d int, most *float64) bool {
	var seen []int
	for j := range p {
		k := o.threads[j].kind
		if p[j] != 1<<d || k == o.threads[i].kind || slices.Contains(seen, k) || o.scored >= mostScored {
			continue
		}
		seen = append(seen, k)
		p[i], p[j] = p[j], p[i]
		if score := o.Score(p); score > *most+better {
			*most = score
			return true
		}
		p[i], p[j] = p[j], p[i]
	}
	return false
}
