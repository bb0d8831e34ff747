// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Binding, number 5 of the package comment:
//
//  1. A candidate is approved, below its target for BindAfter windows in a row, and no
//     rule excludes it (standing).
//  2. Candidates are ordered by remote traffic, most first. Those whose remote reads are
//     unknown come after, by CPU use. Choice: the paper gives no order.
//  3. They are placed one after the other, each after what the ones before it took; at
//     most MaxBindsPerWindow are bound. A service with several replicas is placed as a whole;
//     a service that is partly bound comes first; see service.go.

func (r *round) bind() {
	r.owed()
	for _, i := range r.candidates() { // 3
		switch g := r.groupOf[i]; {
		case g != nil:
			r.bindService(g)
		case r.binds >= r.cfg.MaxBindsPerWindow:
			r.limited(i)
		default:
			r.place(i, false)
		}
	}
}

// limited is the reason of a workload that only this window's limit keeps from being bound.
func (r *round) limited(i int) {
	most := number("binds", unit.Measured(float64(r.binds), "counted"), float64(r.cfg.MaxBindsPerWindow), "workloads")
	r.decide(i, action.Reason{Rule: ruleLimit, Numbers: append(r.loads[i].evidence(), most)})
}

// candidates are numbers 1 and 2 of this file.
func (r *round) candidates() []int {
	var ids []int
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

// standing is the rule that keeps a workload from being a candidate; "" if it is one.
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
	case l.weaker:
		return "mao.keep.counted-lately"
	case !l.misses(&r.cfg, local):
		return "mao.keep.on-target"
	case l.Below < l.patience(&r.cfg):
		return "mao.skip.too-soon"
	case !l.Demand.Known() || l.pages == nil:
		return "mao.keep.unknown"
	}
	return ""
}

// standingReason makes the reason for an unbound workload from the rule of standing.
func (r *round) standingReason(l *load, rule string) action.Reason {
	why := action.Reason{Rule: rule, Workload: l.ID, Numbers: l.evidence()}
	add := func(more ...action.Number) { why.Numbers = append(why.Numbers, more...) }
	switch rule {
	case "mao.skip.doubts":
		why.Detail = r.m.Doubts[0]
	case "mao.keep.aside":
		why.Nodes = l.Aside
	case "mao.skip.pinned":
		why.Detail = l.Binding.PinnedWhy
	case "mao.skip.backoff":
		add(l.until())
	case "mao.keep.no-signal":
		if l.idle(&r.cfg) {
			add(number("cpu_used", l.CPU, r.cfg.MinCPU, "cpus"))
		} else {
			add(number("dram_reads", derived(l.reads.Or(0), true, "local and remote reads"), float64(r.cfg.MinLoads), "reads"))
		}
	case "mao.keep.counted-lately":
		add(windows("windows_ago", r.w.Seq-l.LocalAt))
		if n := len(l.Local); n > 0 {
			add(figure("ratio_then", derived(float64(l.Local[n-1]), true, "a better source"), "ratio"))
		}
	case "mao.keep.on-target":
		if l.local.Or(0) < l.target {
			off, ok := window.LocalAccessError(l.Workload).Get()
			add(figure("estimate_error", derived(float64(off), ok, window.ErrorBasis), "ratio"))
		}
	case "mao.skip.too-soon":
		below := windows("windows_below", uint64(l.Below))
		below.Limit = unit.Some(float64(l.patience(&r.cfg)))
		add(below)
	}
	return why
}

// bindTo binds workload i to the best offer of a search.
func (r *round) bindTo(i int, s *search, best offer) {
	l := &r.loads[i]
	nodes := best.nodes(s)
	l.Nodes, l.Since, l.May = nodes, r.w.Seq, s.mayHave()
	r.book = nil
	r.binds++
	remote := unit.UnknownValue[float64]("no DRAM counters")
	if n, ok := l.RemoteLoads.Get(); ok {
		remote = unit.ValueOf(perSecond(n, r.w.Length), l.RemoteLoads.How, l.RemoteLoads.From)
	}
	reason := r.decide(i, action.Reason{
		Rule: "mao.bind", Nodes: nodes,
		Numbers: append(l.evidence(),
			figure("remote_loads", remote, "1/s"),
			figure("expected_local_ratio", derived(best.local, true, "CPU and page shares there"), "ratio"),
			figure("to_move", derived(float64(best.toMove), true, "pages elsewhere"), "bytes")),
		Alternatives: s.alternatives(best),
	})
	r.actions = append(r.actions, action.Action{
		Kind: action.Bind, Workload: l.ID, Nodes: nodes, CPUsOnly: l.Binding.PinnedMems, Reason: reason,
	})
}

// Rules that several places give, or test for.
const (
	ruleLimit       = "mao.skip.limit"
	ruleService     = "mao.skip.service"
	ruleUnplaceable = "mao.unplaceable" // only as a cause
)

// leave gives each workload that is not decided yet the reason why nothing was done.
func (r *round) leave() {
	for i := range r.loads {
		if r.decided(i) {
			continue
		}
		l := &r.loads[i]
		switch rule := r.standing(l); {
		case rule == "":
			r.decide(i, action.Reason{Rule: "mao.skip.unbinding", Numbers: l.evidence()})
		case l.bound():
			r.decide(i, r.keeps(l))
		default:
			r.decide(i, r.standingReason(l, rule))
		}
	}
}

// keeps is the reason of a binding that stays.
func (r *round) keeps(l *load) action.Reason {
	why := action.Reason{Rule: "mao.keep.bound", Nodes: l.Nodes, Numbers: r.keeping(l)}
	if mean, ok := l.settled(r.w.Seq, r.cfg.SettleWindows); ok && mean < l.target {
		why.Rule = "mao.keep.below-target"
		why.Numbers = append(why.Numbers, figure("mean_local", derived(float64(mean), true, "mean of the last windows"), "ratio"))
		return why.Because(r.excuse(l))
	}
	return why
}

// keeping lists the figures by which a binding that stays is judged.
func (r *round) keeping(l *load) []action.Number {
	numbers := append(make([]action.Number, 0, 6), l.localNumber(), action.Counted("since", float64(l.Since), "window"))
	return r.verdictNumbers(numbers, l, r.verdict(l))
}

// settled is the mean local ratio of the last windows, once it is bound long enough.
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

// excuse is the reason why a binding stays below its target.
func (r *round) excuse(l *load) action.Reason {
	switch {
	case l.Binding.PinnedMems:
		return action.Reason{Rule: "mao.below.pinned", Detail: l.Binding.PinnedWhy}
	case l.Nodes.Len() > 1:
		return action.Reason{Rule: "mao.below.wide"}
	}
	away := derived(share(float64(r.outside(l, l.Nodes)), float64(l.total)), l.pages != nil, "pages by node")
	return action.Reason{Rule: "mao.below.pages", Numbers: []action.Number{figure("pages_elsewhere", away, "ratio")}}
}

// outside is how many bytes it has outside these nodes; 0 when unknown.
func (r *round) outside(l *load, nodes set.NodeSet) (sum unit.Bytes) {
	for j, p := range l.pages {
		if !nodes.Has(r.nodes[j].id) {
			sum += p
		}
	}
	return sum
}
