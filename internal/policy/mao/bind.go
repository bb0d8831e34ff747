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

// Binding, number 5 of the package comment:
//
//  1. A candidate is approved, below its target for BindAfter windows in a row,
//     and nothing speaks against it (standing).
//  2. Candidates by remote traffic, most first; those whose remote reads are not
//     known come after, by CPU use. Choice: the paper gives no order.
//  3. Place one after the other, each seeing what the ones before it took; at
//     most MaxBindsPerWindow are bound. A service with several replicas is placed as a
//     whole, and one of which some are bound comes first; see service.go.

func (r *round) bind() {
	r.owed()
	for _, i := range r.candidates() { // 3
		g := r.group(i)
		switch {
		case g != nil:
			r.bindService(g)
		case r.binds >= r.cfg.MaxBindsPerWindow:
			r.pass(i, "mao.skip.limit")
		default:
			r.place(i)
		}
	}
}

func (r *round) limitWords(i int) wording {
	return wording{
		summary: fmt.Sprintf("it would be placed, but this window's limit of %d is used up", r.cfg.MaxBindsPerWindow),
		numbers: r.loads[i].evidence(),
	}
}

// candidates are numbers 1 and 2 of this file.
func (r *round) candidates() []int {
	r.spare.ids = empty(r.spare.ids, len(r.loads))
	ids := r.spare.ids
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
	case "mao.keep.counted-lately":
		return l.countedLately(r.w.Seq)
	case "mao.keep.on-target":
		return fmt.Sprintf("%v of its accesses are local, the target is %v%s%s", local, l.target, l.guess(), l.withinError(local))
	case "mao.skip.too-soon":
		return fmt.Sprintf("below its target for %d of the %d windows in a row that it takes%s", l.Below, l.patience(&r.cfg), l.guess())
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

// countedLately is why this window's estimate is not judged.
func (l *load) countedLately(seq uint64) string {
	last := "unknown"
	if n := len(l.Local); n > 0 {
		last = l.Local[n-1].String()
	}
	return fmt.Sprintf("its local access ratio was %s from a better source %d windows ago, and is only estimated in this one: not judged by that", last, seq-l.LocalAt)
}

// withinError says so when it is below its target by no more than an estimate's error.
func (l *load) withinError(local unit.Ratio) string {
	if local >= l.target {
		return ""
	}
	return fmt.Sprintf(": below that by less than an estimate may be off (%v), times estimate_margin", window.LocalAccessError(l.Workload).Or(0))
}

// guess says so when the local access ratio is no measurement.
func (l *load) guess() string {
	v := window.LocalAccessRatio(l.Workload)
	switch {
	case v.How != unit.HowEstimated:
		return ""
	case window.ByPages(l.Workload):
		return " (estimated from its pages and CPU time by node)"
	}
	return " (estimated from " + v.From + ")"
}

// evidence is what a candidate is judged by.
func (l *load) evidence() []action.Number {
	return []action.Number{l.localNumber(), figure("cpu_demand", l.demandValue(), "cpus"), figure("quota", l.Quota, "cpus")}
}

// bindTo binds workload i to the best that a search found.
func (r *round) bindTo(i int, s *search, best offer) {
	l := &r.loads[i]
	local, nodes := l.local.Or(0), best.nodes(s)
	l.Nodes, l.Since, l.May = nodes, r.w.Seq, s.mayHave()
	l.kept = l.keptWords()
	r.book = nil
	r.binds++
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

// leave gives every workload not decided yet the rule by which nothing was done.
func (r *round) leave() {
	for i := range r.loads {
		if r.decided(i) {
			continue
		}
		l := &r.loads[i]
		rule := r.standing(l)
		switch {
		case rule == "":
			rule = "mao.skip.unbinding"
		case l.bound():
			rule = "mao.keep.bound"
			if mean, ok := l.settled(r.w.Seq, r.cfg.SettleWindows); ok && mean < l.target {
				rule = "mao.keep.below-target"
			}
		}
		r.pass(i, rule)
	}
}

// wordsOf is why a workload is left alone, where that follows from the rule.
func (r *round) wordsOf(i int) wording {
	l := &r.loads[i]
	switch rule := r.rules[i]; rule {
	case "mao.skip.unbinding":
		return wording{summary: "it would be placed, but something was unbound or widened in this window: first see what that did", numbers: l.evidence()}
	case "mao.skip.limit":
		return r.limitWords(i)
	case "mao.skip.one-node":
		return wording{summary: "there is only one node with CPUs and memory", numbers: l.evidence()}
	case "mao.keep.aside":
		return r.asideWords(l)
	case "mao.keep.contended":
		return r.contendedWords(l)
	case "mao.keep.below-target":
		mean, _ := l.settled(r.w.Seq, r.cfg.SettleWindows)
		return wording{
			summary: fmt.Sprintf("bound to nodes %v since window %d, and still only %v local%s", l.Nodes, l.Since, mean, r.excuse(l)),
			numbers: r.keeping(l),
		}
	case "mao.keep.bound":
		words := l.kept
		if words == "" {
			words = l.keptWords()
		}
		return wording{summary: words, numbers: r.keeping(l)}
	default:
		return wording{summary: r.standingFor(l, rule), numbers: l.evidence()}
	}
}

func (m *Memory) keptWords() string {
	return fmt.Sprintf("bound to nodes %v since window %d; nothing asks for an unbind", m.Nodes, m.Since)
}

// keeping is what a binding that stays is judged by.
func (r *round) keeping(l *load) []action.Number {
	numbers := append(r.slab(4), r.localNumber(l))
	return r.appendNumbers(numbers, l, r.verdict(l))
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

// outside is how many bytes it has outside these nodes; 0 when unknown. Bytes are whole
// numbers: it does not matter in which order they are added up.
func (r *round) outside(l *load, nodes set.NodeSet) unit.Bytes {
	if l.pages == nil {
		return 0
	}
	sum := l.total
	if nodes == l.Nodes {
		for _, j := range r.spanOf(l).at {
			sum -= l.pages[j]
		}
		return sum
	}
	for j, p := range l.pages {
		if nodes.Has(r.nodes[j].id) {
			sum -= p
		}
	}
	return sum
}
