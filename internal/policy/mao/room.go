// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
)

// Making room, number 6 of the package comment. It is not in the paper: nodes there have 20
// CPUs and more, and a misplaced thread costs little.
//
// A bound workload cannot get away from a CPU hog that the kernel put on its node, and the
// kernel may leave it there for ever. With one cgroup per workload a single busy thread
// weighs as much as a whole service, so the domains look balanced while other nodes have
// idle CPUs (load by group weight, kernel/sched/fair.c). Therefore:
//
//  1. A node is contested if workloads are bound to it, its CPUs are used up,
//     and unbound workloads use CPU there (squatters).
//  2. The open nodes are those without bindings. There is room if all unbound workloads
//     together use no more CPU than those have.
//  3. Then they, and all other unbound workloads that use CPU, get the CPUs of the open
//     nodes, and only those; memory stays where it is. A workload that another process
//     restricts is left alone.
//  4. A workload gets its CPUs back when this no longer helps: nothing is bound any more,
//     a bound workload now is on its nodes, a node went offline, or its nodes are used up,
//     others leave CPU idle, and it waits for a CPU. Two threads on two CPUs use them up
//     and wait for none. Where waiting is unknown, it is assumed.

// keepAside is number 4, before any binding.
func (r *round) keepAside() {
	for i := range r.loads {
		l := &r.loads[i]
		if l.Aside.IsEmpty() {
			continue
		}
		cause, over := r.asideOver(l)
		if !over {
			r.decide(i, r.standingReason(l, "mao.keep.aside"))
			continue
		}
		l.Aside = set.NodeSet{}
		why := action.Reason{Rule: "mao.room.over"}.Because(cause)
		if !l.Approved { // an approved one makes no more room, and may be bound at once
			*l.Memory = l.release(r.cfg, r.w.Seq)
			why.Numbers = []action.Number{l.until()}
		}
		r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: l.ID, Reason: r.decide(i, why)})
	}
}

// asideOver is the reason why a workload need not keep aside any more; false while it must.
func (r *round) asideOver(l *load) (why action.Reason, over bool) {
	bound := r.boundNodes()
	switch {
	case l.Approved:
		return action.Reason{Rule: "mao.over.approved"}, true
	case bound.IsEmpty():
		return action.Reason{Rule: "mao.over.nothing-bound"}, true
	case !l.Aside.SubsetOf(r.usable):
		return action.Reason{Rule: "mao.over.offline"}, true
	case l.Aside.Overlaps(bound):
		return action.Reason{Rule: "mao.over.bound-there", Nodes: l.Aside.Intersect(bound)}, true
	}
	used, cpus, idle := 0.0, 0.0, 0.0
	for j := range r.nodes {
		n := &r.nodes[j]
		busy, ok := n.busy.Get()
		switch {
		case !ok:
		case l.Aside.Has(n.id):
			used, cpus = used+busy, cpus+n.count
		default:
			idle += max(0, n.count-busy)
		}
	}
	if used >= cpus*float64(r.cfg.SaturatedShare) && idle >= r.cfg.RoomIdle && r.starved(l) {
		left := number("idle_elsewhere", derived(idle, true, "CPU time of the other nodes"), r.cfg.RoomIdle, "cpus")
		return action.Reason{Rule: "mao.over.used-up", Nodes: l.Aside, Numbers: []action.Number{left}}, true
	}
	return why, false
}

// boundNodes are the nodes with bindings.
func (r *round) boundNodes() set.NodeSet {
	var all set.NodeSet
	for i := range r.loads {
		all = all.Union(r.loads[i].Nodes)
	}
	for i := range r.absent {
		all = all.Union(r.absent[i].Nodes)
	}
	return all
}

// makeRoom is numbers 1 to 3, once no candidate waits to be bound.
func (r *round) makeRoom() {
	if !r.cfg.MakeRoom || len(r.actions) > 0 || r.waiting() {
		return
	}
	open := r.usable.Minus(r.boundNodes()) // 2
	if open.IsEmpty() {
		return
	}
	squatters := r.squatters() // 1
	if len(squatters) == 0 || !r.roomOn(open) {
		return
	}
	for _, i := range squatters { // 3
		l := &r.loads[i]
		l.Aside = open
		reason := r.decide(i, action.Reason{Rule: "mao.room", Nodes: open, Numbers: append(l.evidence(), figure("cpu", l.CPU, "cpus"))})
		r.actions = append(r.actions, action.Action{Kind: action.Bind, Workload: l.ID, Nodes: open, CPUsOnly: true, Reason: reason})
	}
}

// waiting reports that a candidate was not placed because of this window's limit.
func (r *round) waiting() bool {
	return slices.ContainsFunc(r.reasons, func(why action.Reason) bool { return why.Rule == ruleLimit })
}

// squatters are all workloads that can make room and use CPU, in order, if one of them is
// in the way now: the kernel would move the others to where it was.
func (r *round) squatters() []int {
	contested := r.contested()
	if contested.IsEmpty() {
		return nil
	}
	var all []int
	inTheWay := false
	for i := range r.loads {
		l := &r.loads[i]
		if l.bound() || !l.Aside.IsEmpty() || l.Approved || l.Binding.PinnedCPUs || r.w.Seq < l.NotBefore || r.decided(i) {
			continue
		}
		if l.CPU.Or(0) >= r.cfg.MinCPU {
			all = append(all, i)
		}
		for j := range r.nodes {
			id := r.nodes[j].id
			inTheWay = inTheWay || contested.Has(id) && l.cpuOn(j, id, set.NodeSet{}) >= r.cfg.MinCPU
		}
	}
	if !inTheWay {
		return nil
	}
	return all
}

// contested are nodes with bound workloads whose CPUs are used up.
func (r *round) contested() set.NodeSet {
	bound := r.boundNodes()
	var all set.NodeSet
	for j := range r.nodes {
		n := &r.nodes[j]
		busy, ok := n.busy.Get()
		if ok && bound.Has(n.id) && busy >= n.count*float64(r.cfg.RoomBusy) {
			all = all.With(n.id)
		}
	}
	return all
}

// roomOn reports whether all unbound workloads fit there by CPU use.
func (r *round) roomOn(open set.NodeSet) bool {
	want := 0.0
	for i := range r.loads {
		if l := &r.loads[i]; !l.bound() {
			want += l.CPU.Or(0)
		}
	}
	return want <= float64(r.countOf(open)*r.cfg.QuotaTolerance)+rounding
}
