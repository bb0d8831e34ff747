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

// Contender is a workload to be placed.
type Contender struct {
	Spec  *sim.Spec
	Pages []float64 // bytes by node, where they are now: of two equally good placements, the one with less to move wins
	Fixed Nodes     // 0: it may be anywhere
}

// Oracle computes the worth of placements from what no policy knows: the specs and the
// model. It is for Search.
//
//  1. What a workload would do alone with all its memory local: the cycles of an
//     operation, and from these the CPUs that it wants at the peak of its demand.
//  2. In a placement, CPUs are given out, first to workloads with few nodes. Memory on the
//     workload's nodes stays where it is, and the rest is spread over them. On several nodes
//     its threads migrate, and no part of the memory is local to the thread that uses it.
//  3. Speed is operations relative to demand, times cycles alone relative to cycles now;
//     without a rate, operations relative to those alone.
//  4. The score is the mean logarithm of the speeds, weighted by the CPUs wanted: a tenth
//     faster is worth the same to all. A placement without room for all memory is invalid.
//
// It knows no phases, no hour of the day and no growth: placements by hand are for the peak
// of the day.
type Oracle struct {
	sys     *memsys.System
	solver  memsys.Solver
	all     Nodes // nodes with CPUs and memory
	loads   []oracleLoad
	domains [][]int // of each node
	// Memory of Score.
	free, memory []float64
	share        [][]float64
	work         []memsys.Load
	order        []int
}

// oracleLoad is a contender as the oracle sees it.
type oracleLoad struct {
	Contender
	work   memsys.Work
	bytes  float64
	most   float64 // CPUs it may use
	cycles float64 // alone
	ops    float64 // requested; or, in a closed loop, done alone
	want   float64 // CPUs
}

// NewOracle computes each workload alone.
func NewOracle(sys *memsys.System, here []Contender) *Oracle {
	o := &Oracle{sys: sys, domains: make([][]int, len(sys.Nodes)), free: make([]float64, len(sys.Nodes)), memory: make([]float64, len(sys.Nodes))}
	for d, dom := range sys.Domains {
		o.domains[dom.Node] = append(o.domains[dom.Node], d)
	}
	for i, n := range sys.Nodes {
		if n.CPUs > 0 && n.Memory > 0 {
			o.all |= 1 << i
		}
	}
	for i, c := range here {
		o.loads = append(o.loads, o.alone(c))
		o.share = append(o.share, make([]float64, len(sys.Nodes)))
		o.order = append(o.order, i)
	}
	return o
}

// alone is number 1 of Oracle.
func (o *Oracle) alone(c Contender) oracleLoad {
	s := c.Spec
	if c.Pages == nil {
		c.Pages = make([]float64, len(o.sys.Nodes))
	}
	l := oracleLoad{Contender: c, work: s.Work.In(sim.PhaseSpec{}), bytes: s.Held(), most: float64(max(1, s.Threads))}
	if s.CPULimit > 0 {
		l.most = min(l.most, s.CPULimit)
	}
	domain := 0
	for d, dom := range o.sys.Domains {
		if o.all.has(dom.Node) && (!o.all.has(o.sys.Domains[domain].Node) || dom.CPUs > o.sys.Domains[domain].CPUs) {
			domain = d
		}
	}
	home := make([]float64, len(o.sys.Nodes))
	home[o.sys.Domains[domain].Node] = 1
	cpus := min(l.most, o.sys.Domains[domain].CPUs)
	r := o.solver.Solve(o.sys, []memsys.Load{{Domain: domain, CPUs: cpus, Threads: max(cpus, float64(s.Threads)), Ops: math.Inf(1), Work: &l.work, Home: home, Slow: 1}})
	l.cycles = max(1, r.Loads[0].Cycles)
	l.ops = s.Demand.Rate
	if l.ops <= 0 {
		l.ops = l.most / (l.cycles/o.sys.Hz + s.Demand.Think.Seconds())
	}
	l.want = min(l.most, l.ops*l.cycles/o.sys.Hz)
	return l
}

// Choices are all sets of nodes on up to four nodes; on more, each node with its nearest 0,
// 1, 3, 7, … neighbours, and all nodes.
func (o *Oracle) Choices() [][]Nodes {
	sets := o.sets()
	choices := make([][]Nodes, len(o.loads))
	for i, l := range o.loads {
		if l.Fixed != 0 {
			choices[i] = []Nodes{l.Fixed}
			continue
		}
		choices[i] = sets
	}
	return choices
}

func (o *Oracle) sets() []Nodes {
	var sets []Nodes
	if o.all.count() <= 4 {
		for n := Nodes(1); n <= o.all; n++ {
			if n&^o.all == 0 {
				sets = append(sets, n)
			}
		}
	} else {
		for i := range o.sys.Nodes {
			for k := 1; o.all.has(i) && k < o.all.count(); k *= 2 {
				sets = append(sets, o.nearest(i, k))
			}
		}
		sets = append(sets, o.all)
	}
	slices.SortStableFunc(sets, func(a, b Nodes) int { return cmp.Or(a.count()-b.count(), cmp.Compare(a, b)) })
	return slices.Compact(sets)
}

// nearest is k nodes around i, i included.
func (o *Oracle) nearest(i, k int) Nodes {
	var order []int
	for j := range o.sys.Nodes {
		if o.all.has(j) {
			order = append(order, j)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.sys.Latency[i][a], o.sys.Latency[i][b]) })
	var n Nodes
	for _, j := range order[:k] {
		n |= 1 << j
	}
	return n
}

// Weights are the CPUs wanted times the bytes.
func (o *Oracle) Weights() []float64 {
	w := make([]float64, len(o.loads))
	for i, l := range o.loads {
		w[i] = l.want * (1 + l.bytes)
	}
	return w
}

// Score is numbers 2 to 4 of Oracle. CPUs wanted depend on the cycles of an operation,
// which depend on the CPUs given: two rounds are exact enough to order placements.
func (o *Oracle) Score(p Placement) float64 {
	if !o.fits(p) {
		return math.Inf(-1)
	}
	for i := range o.loads {
		o.loads[i].want = min(o.loads[i].most, o.loads[i].ops*o.loads[i].cycles/o.sys.Hz)
	}
	var r *memsys.Result
	for range 2 {
		o.giveCPUs(p)
		o.makeLoads(p)
		r = o.solver.Solve(o.sys, o.work)
		o.wantMore(r)
	}
	return o.worth(p, r)
}

// fits splits memory over a workload's nodes by what is left there.
func (o *Oracle) fits(p Placement) bool {
	for i, n := range o.sys.Nodes {
		o.memory[i] = n.Memory * usable
	}
	o.sortNarrow(p)
	for _, i := range o.order {
		nodes := o.allowed(p[i])
		left := o.sum(nodes, o.memory)
		if o.loads[i].bytes > left {
			return false
		}
		for k := range o.memory {
			if nodes.has(k) && left > 0 {
				o.memory[k] *= 1 - o.loads[i].bytes/left
			}
		}
	}
	return true
}

// usable is the share of a node's memory that workloads can have; the rest is the kernel's.
const usable = 0.95

func (o *Oracle) allowed(n Nodes) Nodes {
	if n == 0 {
		return o.all
	}
	return n
}

func (o *Oracle) sum(nodes Nodes, of []float64) float64 {
	sum := 0.0
	for k, v := range of {
		if nodes.has(k) {
			sum += v
		}
	}
	return sum
}

// sortNarrow puts workloads with few nodes first: others make way for them.
func (o *Oracle) sortNarrow(p Placement) {
	slices.SortFunc(o.order, func(a, b int) int {
		return cmp.Or(o.allowed(p[a]).count()-o.allowed(p[b]).count(), a-b)
	})
}

// giveCPUs splits what is wanted over nodes by what is free there; what exceeds that, by
// their CPUs. So no more is given than there is.
func (o *Oracle) giveCPUs(p Placement) {
	for k, n := range o.sys.Nodes {
		o.free[k] = n.CPUs
	}
	for _, i := range o.order {
		nodes, want := o.allowed(p[i]), o.loads[i].want
		left := 0.0
		cpus := 0.0
		for k, f := range o.free {
			if nodes.has(k) {
				left += max(0, f)
				cpus += o.sys.Nodes[k].CPUs
			}
		}
		fitting := min(want, left)
		for k := range o.share[i] {
			o.share[i][k] = 0
			if nodes.has(k) && left > 0 {
				o.share[i][k] = fitting * max(0, o.free[k]) / left
			}
			if nodes.has(k) && cpus > 0 {
				o.share[i][k] += (want - fitting) * o.sys.Nodes[k].CPUs / cpus
			}
		}
		for k, s := range o.share[i] {
			o.free[k] -= s
		}
	}
}

// makeLoads makes the loads for the solver. An overfull node gives each workload the same
// part of what it wants.
func (o *Oracle) makeLoads(p Placement) {
	o.work = o.work[:0]
	for i := range o.loads {
		l := &o.loads[i]
		home := o.home(p[i], i)
		for k, share := range o.share[i] {
			if share <= 0 {
				continue
			}
			cpus := o.sys.Nodes[k].CPUs
			got := share * min(1, cpus/max(cpus-o.free[k], 1e-9))
			for _, d := range o.domains[k] {
				part := o.sys.Domains[d].CPUs / cpus
				o.work = append(o.work, memsys.Load{
					Workload: i, Domain: d, CPUs: got * part, Threads: max(got, l.threads()*share/max(l.want, 1e-9)) * part,
					Ops: l.ops * share / max(l.want, 1e-9) * part, Work: &l.work, Home: home, Slow: 1,
				})
			}
		}
	}
}

func (l *oracleLoad) threads() float64 { return float64(max(1, l.Spec.Threads)) }

// home is where workload i's accesses go: memory that is on its nodes now stays there, the
// rest is spread over them.
func (o *Oracle) home(nodes Nodes, i int) []float64 {
	l := &o.loads[i]
	nodes = o.allowed(nodes)
	all, there := o.sum(^Nodes(0), l.Pages), o.sum(nodes, l.Pages)
	if all <= 0 {
		all = 1
	}
	home := make([]float64, len(o.sys.Nodes))
	for m := range home {
		if nodes.has(m) {
			home[m] = (l.Pages[m] + (all-there)/float64(nodes.count())) / all
		}
	}
	return home
}

// wantMore updates the CPUs wanted with the present cycles of an operation.
func (o *Oracle) wantMore(r *memsys.Result) {
	for i := range o.loads {
		cycles, _ := o.now(i, r)
		l := &o.loads[i]
		if cycles > 0 {
			l.want = min(l.most, l.ops*cycles/o.sys.Hz)
		}
	}
}

// now is the present cycles of an operation, and operations per second.
func (o *Oracle) now(i int, r *memsys.Result) (cycles, ops float64) {
	for k, load := range o.work {
		if load.Workload == i {
			ops += r.Loads[k].Ops
			cycles += r.Loads[k].Ops * r.Loads[k].Cycles
		}
	}
	return cycles / max(ops, 1e-300), ops
}

// worth is numbers 3 and 4 of Oracle.
func (o *Oracle) worth(p Placement, r *memsys.Result) float64 {
	score, weights := 0.0, 0.0
	for i := range o.loads {
		l := &o.loads[i]
		cycles, ops := o.now(i, r)
		speed := min(1, ops/l.ops)
		if l.Spec.Demand.Rate > 0 {
			speed *= l.cycles / max(cycles, 1)
		}
		speed = max(1e-9, speed)
		weight := max(1e-3, l.ops*l.cycles/o.sys.Hz)
		score += weight*detmath.Log(speed) + weight*stay*o.stays(p[i], i)
		weights += weight
	}
	return score / max(weights, 1e-9)
}

// stay is the worth of memory that need not move: no operator moves a workload for a gain
// of less than this share of its speed.
const stay = 2e-3

func (o *Oracle) stays(nodes Nodes, i int) float64 {
	all := o.sum(^Nodes(0), o.loads[i].Pages)
	if all <= 0 {
		return 0
	}
	return o.sum(o.allowed(nodes), o.loads[i].Pages) / all
}
