// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Wider bindings, number 4 of the package comment. They are not in the paper, where page
// cache pushes allocations to remote nodes. With cpuset.mems set there is no remote node to
// go to, and the kernel kills the workload (CONSTRAINT_CPUSET in mm/oom_kill.c) while the
// machine has memory.
//
//  1. What a workload will need: its smoothed growth per window, times WidenWindows, but
//     no more than its memory limit leaves it. Growth so small that it may be noise counts
//     only at a new peak.
//  2. What is left for it: free memory and ReclaimableShare of the page cache of its
//     nodes, minus FreeReserve and what is on its way there.
//  3. If all workloads there together need more than is left, the one that grows most gets
//     more nodes, then the next, until what is left is enough. Only workloads whose mems
//     homenode set are widened: others may allocate elsewhere.
//  4. One node is added: among the nodes that make it enough the nearest, then the least
//     used, then the one with most memory. If none does, the node with most memory is added,
//     and so on. Only nodes that it was allowed before it was bound qualify, and at most
//     MaxNodes. If that is all that it may have, or no other node has any left, it is
//     unbound: a binding to all nodes gains nothing. A workload whose widening is refused
//     keeps what it had, and does not get those nodes again.
//
// It never narrows, and does not wait for an unbind by strategy: those concern CPU.

// grow tracks a workload's anonymous memory.
func (l *load) grow(cfg *Config, seconds float64) {
	anon := l.anon
	if !l.knowsAnon {
		return
	}
	a, before := cfg.Smoothing, l.Anon.Or(anon)
	if seconds > 0 { // windows differ in length: a calm agent's are longer
		l.Growth = float64(a*(float64(anon-before)/seconds)) + float64((1-a)*l.Growth)
	}
	if l.rising = anon > l.Peak; l.rising {
		l.Peak = anon
	}
	l.Anon = unit.Some(anon)
}

// leastGrowth and leastRising are shares of the largest node's memory. Growth above
// leastGrowth counts at any time; at a new peak, growth above leastRising is enough. With
// smaller values noise would count as growth, or a page would cause an unbind.
const (
	leastGrowth = 0.0005
	leastRising = leastGrowth / 10
)

// wants is number 1, in bytes.
func (r *round) wants(l *load) float64 {
	want := l.Growth * float64(r.cfg.WidenWindows) * r.seconds
	if want <= 0 {
		return 0
	}
	if want < r.largest*leastGrowth && !(l.rising && want >= r.largest*leastRising) {
		return 0
	}
	if limit, ok := l.MemoryLimit.Get(); ok {
		want = min(want, max(0, float64(limit-l.total)))
	}
	return want
}

// widen is number 3. It reports whether anything was given more nodes, or unbound.
func (r *round) widen() bool {
	if !r.cfg.Widen {
		return false
	}
	var growing []int
	for i := range r.loads {
		l := &r.loads[i]
		if l.Growth > 0 && l.bound() && l.Binding.OursMems && l.pages != nil && !r.decided(i) {
			growing = append(growing, i)
		}
	}
	slices.SortFunc(growing, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.loads[b].Growth, r.loads[a].Growth), cmp.Compare(r.loads[a].ID, r.loads[b].ID))
	})
	done := len(r.actions)
	for _, i := range growing {
		nodes := r.loads[i].Nodes
		want, left, known := r.wantsOn(nodes), 0.0, false
		if want > 0 {
			left, known = r.memoryLeft(nodes)
		}
		if known && want > left && r.wants(&r.loads[i]) > 0 {
			r.widenOne(i, want, left)
		}
	}
	return len(r.actions) > done
}

// widenOne is number 4.
func (r *round) widenOne(i int, want, left float64) {
	l := &r.loads[i]
	why := action.Reason{Numbers: []action.Number{
		figure("memory_growth", derived(l.Growth, true, "anonymous memory from window to window, smoothed"), "bytes/s"),
		number("memory_wanted", derived(want, true, "growth of all that is there; limit: what is left"), max(0, left), "bytes"),
		windows("widen_windows", uint64(r.cfg.WidenWindows)),
	}}
	wide, enough, may := l.Nodes, false, r.mayHave(l)
	for !enough && (r.cfg.MaxNodes == 0 || wide.Len() < r.cfg.MaxNodes) {
		var next int
		if next, enough = r.nodeToAdd(wide, may, r.wantsOn(wide), &why); next < 0 {
			break
		}
		wide = wide.With(next)
	}
	defer func() { r.book, r.wanted = nil, nil }()
	if may.SubsetOf(wide) || wide == l.Nodes {
		why.Rule, why.Nodes = "mao.unbind.memory", l.Nodes
		l.Need = l.total + unit.Bytes(r.wants(l))
		r.release(i, why)
		return
	}
	why.Rule, why.Nodes = "mao.widen", wide
	chosen := r.alternativeOf(wide, "")
	chosen.Chosen = true
	why.Alternatives = append(why.Alternatives, chosen)
	l.Was, l.Nodes = l.Nodes, wide
	r.actions = append(r.actions, action.Action{Kind: action.Bind, Workload: l.ID, Nodes: wide, Reason: r.decide(i, why)})
}

// mayHave are the nodes that a bound workload can be given.
func (r *round) mayHave(l *load) set.NodeSet {
	if l.May.IsEmpty() {
		return r.usable
	}
	return r.usable.Intersect(l.May)
}

// staysNarrow takes back a widening that was refused: it keeps the nodes that it had, and
// the added ones are not for it.
func (r *round) staysNarrow(l *load) {
	l.May = r.mayHave(l).Minus(l.Nodes.Minus(l.Was))
	l.Nodes, l.Was = l.Was, set.NodeSet{}
	r.book = nil
}

// nodeToAdd is the node that a set gets, among those that may be added, and whether that is
// enough; −1: none has anything left. The others become alternatives.
func (r *round) nodeToAdd(to, may set.NodeSet, want float64, why *action.Reason) (id int, enough bool) {
	book := r.open()
	type choice struct {
		id       int
		enough   bool
		distance int
		use      float64
		left     float64
	}
	var all []choice
	for j := range r.nodes {
		n := &r.nodes[j]
		left, known := r.memoryLeft(set.FromNodes(n.id))
		if to.Has(n.id) || !may.Has(n.id) || n.cpus.IsEmpty() || !known || left <= 0 {
			continue
		}
		wide := to.With(n.id)
		both, _ := r.memoryLeft(wide)
		c := choice{id: n.id, enough: want+r.wanted[j] <= both, left: left, use: share(book.cost[j], n.count)}
		for other := range to.All() {
			c.distance += r.m.Distance(other, n.id).Or(far) + r.m.Distance(n.id, other).Or(far)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b choice) int {
		return cmp.Or(
			cmp.Compare(b2i(b.enough), b2i(a.enough)),
			b2i(a.enough)*cmp.Compare(a.distance, b.distance),
			b2i(a.enough)*compareRounded(a.use, b.use),
			cmp.Compare(b.left, a.left), cmp.Compare(a.id, b.id))
	})
	if len(all) == 0 {
		return -1, false
	}
	for _, c := range all[1:min(len(all), manyAlternatives)] {
		code := ""
		if !c.enough {
			code = "memory"
		}
		why.Alternatives = append(why.Alternatives, r.alternativeOf(to.With(c.id), code))
	}
	return all[0].id, all[0].enough
}

func (r *round) alternativeOf(nodes set.NodeSet, code string) action.Alternative {
	left, _ := r.memoryLeft(nodes)
	return action.Alternative{Nodes: nodes, Code: code, Figures: []action.Figure{{Name: "memory_left", Value: max(0, left)}}}
}

// memoryLeft is number 2 for these nodes together; it may be negative.
func (r *round) memoryLeft(nodes set.NodeSet) (sum float64, known bool) {
	book := r.open()
	for j := range r.nodes {
		n, wn := &r.nodes[j], &r.w.Nodes[j]
		if !nodes.Has(n.id) {
			continue
		}
		free, ok := wn.Free.Get()
		total, okTotal := n.memory.Get()
		if !ok || !okTotal {
			return 0, false
		}
		cache := float64(float64(wn.File.Or(0)) * float64(r.cfg.ReclaimableShare))
		reserve := float64(float64(total) * float64(r.cfg.FreeReserve))
		sum += float64(free) + cache - reserve - book.incoming[j]
	}
	return sum, true
}

// wantsOn is what all growing workloads will need of these nodes: a bound workload needs
// the same amount on each of its nodes, others need it where their pages are.
func (r *round) wantsOn(nodes set.NodeSet) (sum float64) {
	if r.wanted == nil {
		r.wanted = r.wantedByNode()
	}
	for j := range r.nodes {
		if nodes.Has(r.nodes[j].id) {
			sum += r.wanted[j]
		}
	}
	return sum
}

// wantedByNode is wantsOn for each node.
func (r *round) wantedByNode() []float64 {
	by := make([]float64, len(r.nodes))
	for i := range r.loads {
		l := &r.loads[i]
		want := 0.0
		if l.Growth > 0 && l.pages != nil {
			want = r.wants(l)
		}
		if want <= 0 {
			continue
		}
		ours, count := l.bound() && l.Binding.OursMems, float64(l.Nodes.Len())
		for j := range by {
			switch {
			case !ours:
				by[j] += float64(want * share(float64(l.pages[j]), float64(l.total)))
			case l.Nodes.Has(r.nodes[j].id):
				by[j] += want / count
			}
		}
	}
	return by
}
