// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"fmt"
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
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
			r.pass(i, "mao.skip.limit", func() wording {
				return wording{
					summary: fmt.Sprintf("it would be placed, but this window's limit of %d is used up", r.cfg.MaxBindsPerWindow),
					numbers: r.loads[i].evidence(),
				}
			})
			continue
		}
		if r.place(i) {
			binds++
		}
	}
}

// candidates are numbers 1 and 2 of this file.
func (r *round) candidates() []int {
	ids := make([]int, 0, len(r.loads))
	for i := range r.loads {
		if r.standing(&r.loads[i]) == "" && !r.decided(i) {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return byTraffic(&r.loads[a], &r.loads[b]) })
	return ids
}

func byTraffic(a, b *load) int {
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

// standing is the rule by which a workload is no candidate; "" if it is one.
func (r *round) standing(l *load) string {
	local, known := l.local.Get()
	switch {
	case l.bound():
		return "mao.keep.bound"
	case len(r.m.Doubts) > 0:
		return "mao.skip.doubts"
	case !l.Aside.IsEmpty():
		return "mao.keep.aside"
	case !l.Approved:
		return "mao.skip.not-approved"
	case l.Binding.PinnedCPUs:
		return "mao.skip.pinned"
	case r.w.Seq < l.NotBefore:
		return "mao.skip.backoff"
	case !known:
		return "mao.keep.unknown"
	case l.silent(&r.cfg):
		return "mao.keep.no-signal"
	case local >= l.target:
		return "mao.keep.on-target"
	case l.Below < r.cfg.BindAfter:
		return "mao.skip.too-soon"
	case !l.Demand.Known() || l.pages == nil:
		return "mao.keep.unknown"
	}
	return ""
}

// standingFor says in words by which rule an unbound workload is no candidate.
func (r *round) standingFor(l *load, rule string) string {
	local, known := l.local.Get()
	switch rule {
	case "mao.skip.doubts":
		return "the machine's topology is in doubt: " + r.m.Doubts[0]
	case "mao.keep.aside":
		return "it makes room for others"
	case "mao.skip.not-approved":
		return "its service is not approved for binding"
	case "mao.skip.pinned":
		return "somebody else restricts its CPUs" + because(l.Binding.PinnedWhy)
	case "mao.skip.backoff":
		return fmt.Sprintf("it was unbound or refused, and is left alone until window %d", l.NotBefore)
	case "mao.keep.no-signal":
		return l.silence(&r.cfg)
	case "mao.keep.on-target":
		return fmt.Sprintf("%v of its accesses are local, the target is %v%s", local, l.target, l.guess())
	case "mao.skip.too-soon":
		return fmt.Sprintf("below its target for %d of the %d windows in a row that it takes", l.Below, r.cfg.BindAfter)
	}
	if !known { // mao.keep.unknown
		return "its local access ratio is unknown" + because(window.LocalAccessRatio(l.Workload).From)
	}
	return "its CPU use or its pages by node are unknown, so nothing says where it fits"
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// guess says so when the local access ratio is no measurement.
func (l *load) guess() string {
	if window.LocalAccessRatio(l.Workload).How == unit.HowEstimated {
		return " (estimated from its pages and CPU time by node)"
	}
	return ""
}

// evidence is what a candidate is judged by.
func (l *load) evidence() []action.Number {
	return []action.Number{l.localNumber(), figure("cpu_demand", l.demandValue(), "cpus"), figure("quota", l.Quota, "cpus")}
}

// bindTo binds workload i to the best that a search found.
func (r *round) bindTo(i int, s *search, best offer) {
	l := &r.loads[i]
	local, nodes := l.local.Or(0), best.nodes(s)
	l.Nodes, l.Since = nodes, r.w.Seq
	r.book = nil
	remote := unit.UnknownValue[float64]("no DRAM counters")
	if n, ok := l.RemoteLoads.Get(); ok {
		remote = unit.ValueOf(perSecond(n, r.w.Length), l.RemoteLoads.How, l.RemoteLoads.From)
	}
	reason := r.decide(i, "mao.bind", wording{
		summary: fmt.Sprintf("%v of its accesses are local, the target is %v%s; it has room on nodes %v", local, l.target, l.guess(), nodes),
		numbers: append(l.evidence(),
			figure("remote_loads", remote, "1/s"),
			figure("expected_local_ratio", derived(best.local, true, "CPU and page shares there"), "ratio"),
			figure("to_move", derived(float64(best.toMove), true, "pages elsewhere"), "bytes")),
		alternatives: s.alternatives(best),
	})
	r.actions = append(r.actions, action.Action{
		Kind: action.Bind, Workload: l.ID, Nodes: nodes, CPUsOnly: l.Binding.PinnedMems, Reason: reason,
	})
}

// leave gives every workload not decided yet the reason why nothing was done.
func (r *round) leave() {
	for i := range r.loads {
		if r.decided(i) {
			continue
		}
		l := &r.loads[i]
		rule := r.standing(l)
		switch {
		case rule == "":
			r.pass(i, "mao.skip.unbinding", func() wording {
				return wording{summary: "it would be placed, but something was unbound in this window: first see what that did", numbers: l.evidence()}
			})
		case l.bound():
			r.keep(i)
		default:
			r.pass(i, rule, func() wording { return wording{summary: r.standingFor(l, rule), numbers: l.evidence()} })
		}
	}
}

// keep explains a binding that stays.
func (r *round) keep(i int) {
	l := &r.loads[i]
	if mean, ok := l.settled(r.w.Seq, r.cfg.SettleWindows); ok && mean < l.target {
		r.pass(i, "mao.keep.below-target", func() wording {
			return wording{
				summary: fmt.Sprintf("bound to nodes %v since window %d, and still only %v local%s", l.Nodes, l.Since, mean, r.excuse(l)),
				numbers: r.keeping(l),
			}
		})
		return
	}
	r.pass(i, "mao.keep.bound", func() wording {
		return wording{
			summary: fmt.Sprintf("bound to nodes %v since window %d; nothing asks for an unbind", l.Nodes, l.Since),
			numbers: r.keeping(l),
		}
	})
}

// keeping is what a binding that stays is judged by.
func (r *round) keeping(l *load) []action.Number {
	return append([]action.Number{l.localNumber()}, r.numbersOf(l, r.verdict(l))...)
}

// settled is the mean local ratio of the last windows, once bound long enough.
func (l *load) settled(seq uint64, windows int) (unit.Ratio, bool) {
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

func (r *round) excuse(l *load) string {
	switch {
	case l.Binding.PinnedMems:
		return ", because its memory may not be moved" + because(l.Binding.PinnedWhy)
	case l.Nodes.Len() > 1:
		return ", because one node's CPUs are not enough for it"
	}
	return fmt.Sprintf(": %.0f%% of its pages are elsewhere", 100*share(float64(r.outside(l, l.Nodes)), float64(l.total)))
}

// outside is how many bytes it has outside these nodes; 0 when unknown.
func (r *round) outside(l *load, nodes set.NodeSet) unit.Bytes {
	sum := unit.Bytes(0)
	for j, p := range l.pages {
		if !nodes.Has(r.nodes[j].id) {
			sum += p
		}
	}
	return sum
}
