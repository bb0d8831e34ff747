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

// Binding, number 4 of the package comment:
//
//  1. A candidate is approved, below its target for BindAfter windows in a row,
//     and nothing speaks against it (standing).
//  2. Candidates by remote traffic, most first; those whose remote reads are not
//     known come after, by CPU use. Choice: the paper gives no order.
//  3. Place one after the other, each seeing what the ones before it took; at
//     most MaxBindsPerWindow are bound.

func (r *round) bind() {
	binds := 0
	for _, i := range r.candidates() { // 3
		if binds == r.cfg.MaxBindsPerWindow {
			r.decide(i, "mao.skip.limit", fmt.Sprintf("it would be placed, but this window's limit of %d is used up", r.cfg.MaxBindsPerWindow), r.loads[i].evidence())
			continue
		}
		if r.place(i) {
			binds++
		}
	}
}

// candidates are numbers 1 and 2 of this file.
func (r *round) candidates() []int {
	var ids []int
	for i, l := range r.loads {
		if rule, _ := r.standing(l); rule == "" && !r.decided(i) {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return r.byTraffic(r.loads[a], r.loads[b]) })
	return ids
}

func (r *round) byTraffic(a, b load) int {
	remoteA, okA := a.RemoteLoads.Get()
	remoteB, okB := b.RemoteLoads.Get()
	switch {
	case okA && okB && remoteA != remoteB:
		return cmp.Compare(remoteB, remoteA)
	case okA && !okB:
		return -1
	case okB && !okA:
		return 1
	}
	return cmp.Or(cmp.Compare(b.CPU.Or(0), a.CPU.Or(0)), cmp.Compare(a.ID, b.ID))
}

// standing says why an unbound workload is no candidate; rule "" if it is one.
func (r *round) standing(l load) (rule, summary string) {
	local, known := l.features.LocalAccessRatio.Get()
	quiet := l.noSignal(r.cfg)
	switch {
	case l.bound():
		return "mao.keep.bound", "it is bound"
	case len(r.m.Doubts) > 0:
		return "mao.skip.doubts", "the machine's topology is in doubt: " + r.m.Doubts[0]
	case !l.Aside.IsEmpty():
		return "mao.keep.aside", "it makes room for others"
	case !l.Approved:
		return "mao.skip.not-approved", "its service is not approved for binding"
	case l.Binding.PinnedCPUs:
		return "mao.skip.pinned", "somebody else restricts its CPUs" + because(l.Binding.PinnedWhy)
	case r.w.Seq < l.NotBefore:
		return "mao.skip.backoff", fmt.Sprintf("it was unbound or refused, and is left alone until window %d", l.NotBefore)
	case !known:
		return "mao.keep.unknown", "its local access ratio is unknown" + because(l.features.LocalAccessRatio.From)
	case quiet != "":
		return "mao.keep.no-signal", quiet
	case local >= l.target:
		return "mao.keep.on-target", fmt.Sprintf("%v of its accesses are local, the target is %v%s", local, l.target, l.guess())
	case l.Below < r.cfg.BindAfter:
		return "mao.skip.too-soon", fmt.Sprintf("below its target for %d of the %d windows in a row that it takes", l.Below, r.cfg.BindAfter)
	case !l.Demand.Known() || l.pages == nil:
		return "mao.keep.unknown", "its CPU use or its pages by node are unknown, so nothing says where it fits"
	}
	return "", ""
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// guess says so when the local access ratio is no measurement.
func (l load) guess() string {
	if l.features.LocalAccessRatio.How == unit.HowEstimated {
		return " (estimated from its pages and CPU time by node)"
	}
	return ""
}

// evidence is what a candidate is judged by.
func (l load) evidence() []action.Number {
	return []action.Number{l.localNumber(), figure("cpu_demand", l.demandValue(), "cpus"), figure("quota", l.Quota, "cpus")}
}

// bindTo binds workload i, which fits there.
func (r *round) bindTo(i int, p placement) {
	l := &r.loads[i]
	local := l.features.LocalAccessRatio.Or(0)
	l.Nodes, l.Since = p.nodes, r.w.Seq
	r.book = nil
	remote := unit.UnknownValue[float64]("no DRAM counters")
	if n, ok := l.RemoteLoads.Get(); ok {
		remote = unit.ValueOf(perSecond(n, r.w.Length), l.RemoteLoads.How, l.RemoteLoads.From)
	}
	numbers := append(l.evidence(),
		figure("remote_loads", remote, "1/s"),
		figure("expected_local_ratio", derived(p.local, true, "CPU and page shares there"), "ratio"),
		figure("to_move", derived(float64(p.toMove), true, "pages elsewhere"), "bytes"))
	summary := fmt.Sprintf("%v of its accesses are local, the target is %v%s; it has room on nodes %v", local, l.target, l.guess(), p.nodes)
	r.decide(i, "mao.bind", summary, numbers)
	r.reasons[i].Alternatives = p.alternatives
	r.actions = append(r.actions, action.Action{
		Kind: action.Bind, Workload: l.ID, Nodes: p.nodes, CPUsOnly: l.Binding.PinnedMems, Reason: r.reasons[i],
	})
}

// leave gives every workload not decided yet the reason why nothing was done.
func (r *round) leave() {
	for i, l := range r.loads {
		if r.decided(i) {
			continue
		}
		rule, summary := r.standing(l)
		switch {
		case rule == "":
			r.decide(i, "mao.skip.unbinding", "it would be placed, but something was unbound in this window: first see what that did", l.evidence())
		case l.bound():
			r.keep(i)
		default:
			r.decide(i, rule, summary, l.evidence())
		}
	}
}

// keep explains a binding that stays.
func (r *round) keep(i int) {
	l := r.loads[i]
	v := r.verdict(l)
	numbers := append([]action.Number{l.localNumber()}, v.numbers...)
	rule, summary := "mao.keep.bound", fmt.Sprintf("bound to nodes %v since window %d; nothing asks for an unbind", l.Nodes, l.Since)
	if mean, ok := l.settled(r.w.Seq, r.cfg.SettleWindows); ok && mean < l.target {
		rule = "mao.keep.below-target"
		summary = fmt.Sprintf("bound to nodes %v since window %d, and still only %v local%s", l.Nodes, l.Since, mean, r.excuse(l))
	}
	r.decide(i, rule, summary, numbers)
}

// settled is the mean local ratio of the last windows, once bound long enough.
func (l load) settled(seq uint64, windows int) (unit.Ratio, bool) {
	if seq < l.Since || seq-l.Since < uint64(windows) || len(l.Local) == 0 {
		return 0, false
	}
	last := l.Local[max(0, len(l.Local)-windows):]
	sum := unit.Ratio(0)
	for _, v := range last {
		sum += v
	}
	return sum / unit.Ratio(len(last)), true
}

func (r *round) excuse(l load) string {
	switch {
	case l.Binding.PinnedMems:
		return ", because its memory may not be moved" + because(l.Binding.PinnedWhy)
	case l.Nodes.Len() > 1:
		return ", because one node's CPUs are not enough for it"
	}
	return fmt.Sprintf(": %.0f%% of its pages are elsewhere", 100*share(float64(r.outside(l, l.Nodes)), float64(l.total)))
}

// outside is how many bytes it has outside these nodes; 0 when unknown.
func (r *round) outside(l load, nodes set.NodeSet) unit.Bytes {
	sum := unit.Bytes(0)
	for j, p := range l.pages {
		if !nodes.Has(r.nodes[j].id) {
			sum += p
		}
	}
	return sum
}
