// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"fmt"
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Unbinding, number 3 of the package comment:
//
//  1. What must go whatever the load: a binding to a node that went offline, one
//     of a workload that is no longer approved, and one that is ours but that
//     the state knows nothing of (an orphan: the state was lost).
//  2. Judge every bound workload by strategy A or B (verdict).
//  3. Of those that must go, take the hottest node, and there the one with the
//     least CPU use (paper: "unbinds the instance with the least CPU use").
//     Choice: the least among those that meet the conditions themselves; the
//     paper's conditions speak of a container, so one that is within its quota
//     is never unbound for another's sake.
//  4. Project: its CPU time leaves its nodes and spreads over the idle CPUs of
//     the machine. Back to 2 until none must go: "repeating until balanced".

// unbind reports whether anything was unbound. Orphans do not count: giving one
// back may be refused window after window, which must not stop all binding.
func (r *round) unbind() bool {
	before := len(r.actions)
	orphans := 0
	for i := range r.loads { // 1
		if l := r.loads[i]; l.bound() {
			r.unbindGone(i)
		} else if (l.Binding.OursCPUs || l.Binding.OursMems) && l.Aside.IsEmpty() && !r.decided(i) {
			orphans++
			r.unbindOrphan(i)
		}
	}
	for {
		i, v := r.mostPressing() // 2, 3
		if i < 0 {
			break
		}
		nodes := r.loads[i].Nodes
		r.release(i, "mao.unbind."+string(r.cfg.Strategy), v.summary, v.numbers)
		r.project(r.loads[i], nodes) // 4
	}
	return len(r.actions) > before+orphans
}

// unbindGone is number 1.
func (r *round) unbindGone(i int) {
	l := r.loads[i]
	if gone := l.Nodes.Minus(r.usable()); !gone.IsEmpty() {
		r.release(i, "mao.unbind.node-gone", fmt.Sprintf("node %v of its binding is offline", gone), nil)
	} else if !l.Approved {
		r.release(i, "mao.unbind.not-approved", "its service is no longer approved for binding", nil)
	}
}

// unbindOrphan is number 1 too. It neither starts nor prolongs a back-off.
func (r *round) unbindOrphan(i int) {
	reason := r.decide(i, "mao.unbind.orphan", "it is bound by homenode, but nothing here asks for that", nil)
	r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: r.loads[i].ID, Reason: reason})
}

// usable are the nodes with CPUs to bind to that the machine knows.
func (r *round) usable() set.NodeSet {
	var ids []int
	for _, n := range r.nodes {
		if !n.cpus.IsEmpty() {
			ids = append(ids, n.id)
		}
	}
	return set.FromNodes(ids...)
}

// release unbinds workload i and lets it back off.
func (r *round) release(i int, rule, summary string, numbers []action.Number) {
	l := &r.loads[i]
	l.Memory = l.release(r.cfg, r.w.Seq)
	summary += fmt.Sprintf("; not bound again before window %d", l.NotBefore)
	reason := r.decide(i, rule, summary, numbers)
	r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: l.ID, Reason: reason})
}

// verdict is what a strategy says of one bound workload.
type verdict struct {
	must    bool
	summary string
	numbers []action.Number
	heat    float64 // utilisation of its hottest node
}

// mostPressing is the next to be unbound; -1 if none must go.
func (r *round) mostPressing() (int, verdict) {
	best, bestV := -1, verdict{}
	for i, l := range r.loads {
		if !l.bound() {
			continue
		}
		v := r.verdict(l)
		if v.must && (best < 0 || r.presses(l, v, r.loads[best], bestV)) {
			best, bestV = i, v
		}
	}
	return best, bestV
}

// presses orders by heat, hottest first, then by CPU use, least first, then by ID.
func (r *round) presses(a load, va verdict, b load, vb verdict) bool {
	return cmp.Or(
		cmp.Compare(vb.heat, va.heat),
		cmp.Compare(a.CPU.Or(0), b.CPU.Or(0)),
		cmp.Compare(a.ID, b.ID),
	) < 0
}

// verdict holds a bound workload against the configured strategy. An unknown
// figure makes its condition false: what cannot be seen unbinds nothing.
func (r *round) verdict(l load) verdict {
	hot, heat := r.hottest(l.Nodes)
	over, overNumber := r.overQuota(l)
	v := verdict{heat: heat, numbers: []action.Number{overNumber}}
	if hot < 0 {
		v.summary = "the utilisation of its node is unknown"
		return v
	}
	if r.cfg.Strategy == StrategyA {
		v.must = over && heat > float64(r.cfg.NodeBusy)
		v.numbers = append(v.numbers, number("node_utilisation", derived(heat, true, nodeSource), float64(r.cfg.NodeBusy), "ratio"))
		v.summary = fmt.Sprintf("it uses all the CPU it may and node %d is %.0f%% busy", r.nodes[hot].id, heat*100)
		return v
	}
	return r.strategyB(v, hot, over)
}

const nodeSource = "CPU time of the node / its online CPUs"

// strategyB: (1) imbalance, (2) above the node's own P95, (3) over quota.
func (r *round) strategyB(v verdict, hot int, over bool) verdict {
	n := &r.nodes[hot]
	others, known := r.othersMean(hot)
	ahead := v.heat - others
	one := known && ahead >= float64(r.cfg.ImbalanceThreshold)-rounding // 1
	p95, enough := n.p95Of(r.cfg.MinHistory)
	two := enough && v.heat > p95 // 2
	v.must = one && two && over   // 3
	past := fmt.Sprintf("%d windows of node %d", len(n.history), n.id)
	if !enough {
		past += fmt.Sprintf(", fewer than %d", r.cfg.MinHistory)
	}
	v.numbers = append(v.numbers,
		number("node_ahead_of_others", derived(ahead, known, nodeSource), float64(r.cfg.ImbalanceThreshold), "ratio"),
		action.Number{Name: "node_utilisation", Value: derived(v.heat, true, nodeSource+"; limit: P95 of "+past), Limit: unit.OptOf(p95, enough), Unit: "ratio"},
	)
	v.summary = fmt.Sprintf("it uses all the CPU it may, and node %d is %.0f%% busy: %.0f points more than the others, and more than in 95%% of its past", n.id, v.heat*100, ahead*100)
	return v
}

// rounding is below any figure the kernel can give, and above what adding
// floats in another order can change.
const rounding = 1e-9

// hottest returns the index and utilisation of the busiest of these nodes.
func (r *round) hottest(nodes set.NodeSet) (int, float64) {
	hot, heat := -1, 0.0
	for i, n := range r.nodes {
		if u, ok := n.utilisation(); ok && nodes.Has(n.id) && (hot < 0 || u > heat) {
			hot, heat = i, u
		}
	}
	return hot, heat
}

// othersMean is the mean utilisation of all other nodes that have CPUs; false
// if there are none or none is known.
func (r *round) othersMean(hot int) (float64, bool) {
	sum, count := 0.0, 0.0
	for i, n := range r.nodes {
		if u, ok := n.utilisation(); ok && i != hot {
			sum, count = sum+u, count+1
		}
	}
	return sum / max(count, 1), count > 0
}

// p95Of is the 95th percentile (nearest rank) of the node's history; false while
// that is shorter than need. It does not change as utilisations are projected.
func (n *node) p95Of(need int) (float64, bool) {
	if !n.hasP95 && len(n.history) >= need && need > 0 {
		sorted := slices.Sorted(slices.Values(n.history))
		rank := (95*len(sorted) + 99) / 100 // ⌈0.95 n⌉, counted from 1
		n.p95 = unit.Some(sorted[rank-1])
	}
	n.hasP95 = true
	return n.p95.Get()
}

// overQuota is condition (3). The limit is the quota where it is below the CPUs
// of the binding, else those CPUs; see the package comment.
func (r *round) overQuota(l load) (bool, action.Number) {
	cpu, known := l.CPU.Get()
	cpus := 0.0
	for _, n := range r.nodes {
		if l.Nodes.Has(n.id) {
			cpus += n.count()
		}
	}
	quota, ok := l.Quota.Get()
	if ok && quota < cpus {
		limit := quota * r.cfg.QuotaTolerance
		return known && cpu > limit, number("cpu_of_quota", l.CPU, limit, "cpus")
	}
	limit := cpus * float64(r.cfg.SaturatedShare)
	return known && cpu >= limit-rounding, number("cpu_of_binding", l.CPU, limit, "cpus")
}

// project is number 4 of this file: l leaves its nodes. Nodes whose utilisation
// is unknown stay so.
func (r *round) project(l load, nodes set.NodeSet) {
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
func (l load) cpuOn(index, id int, bound set.NodeSet) float64 {
	if index < len(l.CPUByNode) && l.CPUByNode[index].Known() {
		return l.CPUByNode[index].Or(0)
	}
	if !bound.Has(id) {
		return 0
	}
	return l.CPU.Or(0) / float64(bound.Len())
}
