// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Unbinding, number 3 of the package comment:
//
//  1. Bindings that must end at any load: to a node that went offline; of a workload that
//     is no longer approved; one that homenode set but the state does not know (an orphan:
//     the state was lost); and the bound replicas of a service that could not be bound as a
//     whole.
//  2. Judge every bound workload by strategy A or B (verdict).
//  3. Of those that must go, take the hottest node, and there the one with the least CPU
//     use (paper: "unbinds the instance with the least CPU use"). Choice: the least among
//     those that meet the conditions themselves. The paper's conditions are about a
//     container, so a container within its quota is never unbound because of another.
//  4. Project: its CPU time leaves its nodes and spreads over the idle CPUs of the
//     machine. Back to 2 until none must go: "repeating until balanced". The other replicas
//     of its service go with it, where they must be alike.

// unbind reports whether anything was unbound. Orphans do not count: giving one back may be
// refused in every window, which must not stop all binding.
func (r *round) unbind() bool {
	before := len(r.actions)
	orphans := 0
	r.unbindUneven()         // 1
	for i := range r.loads { // 1
		if l := &r.loads[i]; l.bound() {
			r.unbindGone(i)
		} else if (l.Binding.OursCPUs || l.Binding.OursMems) && l.Aside.IsEmpty() && !r.decided(i) {
			orphans++
			r.unbindOrphan(i)
		}
	}
	over := r.overloaded()
	for {
		i, v := r.mostPressing(over) // 2, 3
		if i < 0 {
			break
		}
		l := &r.loads[i]
		nodes := l.Nodes
		hot := set.FromNodes(r.nodes[v.hot].id)
		r.release(i, action.Reason{Rule: "mao.unbind." + string(r.cfg.Strategy), Nodes: hot, Numbers: r.verdictNumbers(nil, l, v)})
		r.project(l, nodes) // 4
		r.together(i)
	}
	return len(r.actions) > before+orphans
}

// unbindGone is number 1.
func (r *round) unbindGone(i int) {
	l := &r.loads[i]
	if gone := l.Nodes.Minus(r.usable); !gone.IsEmpty() {
		r.release(i, action.Reason{Rule: "mao.unbind.node-gone", Nodes: gone})
	} else if !l.Approved {
		r.release(i, action.Reason{Rule: "mao.unbind.not-approved"})
	}
}

// unbindOrphan is also number 1. It neither starts nor prolongs a back-off.
func (r *round) unbindOrphan(i int) {
	reason := r.decide(i, action.Reason{Rule: "mao.unbind.orphan"})
	r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: r.loads[i].ID, Reason: reason})
}

// release unbinds workload i and starts its back-off.
func (r *round) release(i int, why action.Reason) {
	l := &r.loads[i]
	*l.Memory = l.release(r.cfg, r.w.Seq)
	why.Numbers = append(why.Numbers, l.until())
	r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: l.ID, Reason: r.decide(i, why)})
}

// verdict is a strategy's result for one bound workload.
type verdict struct {
	must  bool
	hot   int     // index of its hottest node; −1 if no utilisation is known
	heat  float64 // utilisation there
	ahead float64 // difference from the other nodes' mean; strategy B
	known bool    // whether ahead is known
}

// overloaded lists the workloads over their quota, which both strategies require. Unbinding
// others does not change this list.
func (r *round) overloaded() (over []int) {
	for i := range r.loads {
		if l := &r.loads[i]; l.bound() && r.overQuota(l) {
			over = append(over, i)
		}
	}
	return over
}

// mostPressing is the next of these to be unbound; -1 if none must go.
func (r *round) mostPressing(over []int) (int, verdict) {
	best, bestV := -1, verdict{}
	for _, i := range over {
		l := &r.loads[i]
		if !l.bound() {
			continue
		}
		v := r.verdict(l)
		if v.must && (best < 0 || r.presses(i, v, best, bestV)) {
			best, bestV = i, v
		}
	}
	return best, bestV
}

// presses orders by heat, hottest first; then by CPU use (of all its service's replicas
// that would go with it), least first; then by the workload's own use; then by ID.
func (r *round) presses(i int, va verdict, k int, vb verdict) bool {
	a, b := &r.loads[i], &r.loads[k]
	return cmp.Or(
		cmp.Compare(vb.heat, va.heat),
		compareRounded(r.pressingCPU(i), r.pressingCPU(k)),
		cmp.Compare(a.CPU.Or(0), b.CPU.Or(0)),
		cmp.Compare(a.ID, b.ID),
	) < 0
}

// verdict judges a bound workload by the configured strategy. An unknown figure makes its
// condition false: what is unknown unbinds nothing.
func (r *round) verdict(l *load) verdict {
	v := verdict{}
	v.hot, v.heat = r.hottest(l)
	switch {
	case v.hot < 0:
	case r.cfg.Strategy == StrategyA:
		v.must = v.heat > float64(r.cfg.NodeBusy) && r.overQuota(l)
	default:
		r.strategyB(&v, l)
	}
	return v
}

// strategyB: (1) imbalance, (2) above the node's own P95, (3) over quota. Choice: the node is
// also as busy as A asks (4). The paper's text does not say so, but on a node with CPUs to
// spare nothing is won by unbinding, and B unbound more than A on hosts that were half idle.
func (r *round) strategyB(v *verdict, l *load) {
	var others float64
	others, v.known = r.othersMean(v.hot)
	v.ahead = v.heat - others
	p95, ok := r.nodes[v.hot].p95.Get()
	v.must = r.isAhead(*v) && // 1
		ok && v.heat > p95 && // 2
		r.overQuota(l) && // 3
		v.heat > float64(r.cfg.NodeBusy) // 4
}

// isAhead is condition (1) of strategy B.
func (r *round) isAhead(v verdict) bool {
	return v.known && v.ahead >= float64(r.cfg.ImbalanceThreshold)-rounding
}

// verdictNumbers adds the figures of a verdict, whatever it is, in reading order: the first
// condition that does not hold is why a binding stays.
func (r *round) verdictNumbers(numbers []action.Number, l *load, v verdict) []action.Number {
	const source = "CPU time of the node / its online CPUs"
	limit, of := r.quotaLimit(l)
	quota := number(of, l.CPU, limit, "cpus")
	quota.Decides = !r.overQuota(l)
	numbers = append(numbers, quota)
	if v.hot < 0 {
		return numbers
	}
	if r.cfg.Strategy == StrategyA {
		busy := number("node_utilisation", derived(v.heat, true, source), float64(r.cfg.NodeBusy), "ratio")
		busy.Decides = !quota.Decides && !v.must
		return append(numbers, busy)
	}
	busy := figure("node_utilisation", derived(v.heat, true, source+"; limit: P95 of its past, or what node_busy asks"), "ratio")
	if p95, ok := r.nodes[v.hot].p95.Get(); ok {
		busy.Limit = unit.Some(max(p95, float64(r.cfg.NodeBusy)))
	}
	ahead := number("node_ahead_of_others", derived(v.ahead, v.known, source), float64(r.cfg.ImbalanceThreshold), "ratio")
	ahead.Decides = !quota.Decides && !r.isAhead(v)
	busy.Decides = !quota.Decides && !ahead.Decides && !v.must
	return append(numbers, ahead, busy)
}

// rounding is smaller than any figure the kernel can give, and larger than what adding
// floats in another order can change.
const rounding = 1e-9

// hottest returns the index and utilisation of the busiest of a workload's nodes.
func (r *round) hottest(l *load) (int, float64) {
	hot, heat := -1, 0.0
	for j := range r.nodes {
		if !l.Nodes.Has(r.nodes[j].id) {
			continue
		}
		if u, ok := r.nodes[j].utilisation(); ok && (hot < 0 || u > heat) {
			hot, heat = j, u
		}
	}
	return hot, heat
}

// othersMean is the mean utilisation of all other nodes that have CPUs; false if there are
// none or none is known.
func (r *round) othersMean(hot int) (float64, bool) {
	sum, count := 0.0, 0.0
	for i := range r.nodes {
		if u, ok := r.nodes[i].utilisation(); ok && i != hot {
			sum, count = sum+u, count+1
		}
	}
	return sum / max(count, 1), count > 0
}

// overQuota is condition (3).
func (r *round) overQuota(l *load) bool {
	cpu, known := l.CPU.Get()
	limit, of := r.quotaLimit(l)
	if of == ofQuota {
		return known && cpu > limit
	}
	return known && cpu >= limit-rounding
}

const (
	ofQuota   = "cpu_of_quota"
	ofBinding = "cpu_of_binding"
)

// quotaLimit is the quota if it is below the CPUs of the binding, else those CPUs, and says
// which of the two it is; see the package comment.
func (r *round) quotaLimit(l *load) (limit float64, of string) {
	cpus := r.countOf(l.Nodes)
	if quota, ok := l.Quota.Get(); ok && quota < cpus {
		return quota * r.cfg.QuotaTolerance, ofQuota
	}
	return cpus * float64(r.cfg.SaturatedShare), ofBinding
}

// countOf is the number of CPUs of these nodes.
func (r *round) countOf(nodes set.NodeSet) float64 {
	cpus := 0.0
	for j := range r.nodes {
		if n := &r.nodes[j]; nodes.Has(n.id) {
			cpus += n.count
		}
	}
	return cpus
}

// project is number 4 of this file: l leaves its nodes. Nodes whose utilisation is unknown
// stay so.
func (r *round) project(l *load, nodes set.NodeSet) {
	moved, idleSum := 0.0, 0.0
	idle := make([]float64, len(r.nodes))
	for j := range r.nodes {
		n := &r.nodes[j]
		busy, ok := n.busy.Get()
		if !ok || n.online == 0 {
			continue
		}
		gone := min(busy, l.cpuOn(j, n.id, nodes))
		n.busy = unit.Some(busy - gone)
		idle[j] = max(0, n.online-busy+gone)
		moved += gone
		idleSum += idle[j]
	}
	for j := range r.nodes {
		if busy, ok := r.nodes[j].busy.Get(); ok && idleSum > 0 {
			r.nodes[j].busy = unit.Some(busy + moved*idle[j]/idleSum)
		}
	}
}

// cpuOn is the CPU use on a node: measured, else an equal share of the total on
// each node of the binding.
func (l *load) cpuOn(index, id int, bound set.NodeSet) float64 {
	if index < len(l.CPUByNode) && l.CPUByNode[index].Known() {
		return l.CPUByNode[index].Or(0)
	}
	if !bound.Has(id) {
		return 0
	}
	return l.CPU.Or(0) / float64(bound.Len())
}
