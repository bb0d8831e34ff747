// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one round of the optimizer. It returns the next state, what to do,
// and exactly one reason for each of the window's workloads, in their order.
// The numbers are those of the package comment.
func Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []action.Reason) {
	r := newRound(m, cfg, st, w) // 1
	r.reasons, r.explain = make([]action.Reason, len(w.Workloads)), true
	next := r.run(st)
	return next, r.actions, r.reasons
}

// Decide is Step for those who have no use for words, such as a simulator of many
// servers: the same next state, the same actions with their whole reasons, and of
// each workload the rule that fired, in their order. It takes a quarter of the time:
// to say why nothing is done is most of the work of most windows.
func Decide(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []string) {
	r := newRound(m, cfg, st, w) // 1
	next := r.run(st)
	return next, r.actions, r.rules
}

// run is numbers 2 to 5 of Step.
func (r *round) run(st State) State {
	r.outcomes()     // 2
	if !r.unbind() { // 3
		r.bind() // 4
	}
	r.keepAside() // 5
	r.makeRoom()  // 5
	r.leave()
	return r.next(st)
}

// round is one Step at work. It owns what it changes; nodes are parallel to
// Window.Nodes; loads, rules, reasons to Window.Workloads.
type round struct {
	m     machine.Machine
	cfg   Config
	w     window.Window
	nodes []node
	loads []load
	// memories are those of the next state; absent are remembered too, but not in this
	// window.
	memories, absent []Memory
	actions          []action.Action
	rules            []string          // "": not decided yet
	reasons          []action.Reason   // nil: none needed yet
	explain          bool              // every rule gets its reason, not only those of actions
	book             *ledger           // what nodes have given away; nil: to be added up anew
	scratch          search            // the last one; its slices are used again
	apart            unit.Opt[float64] // see remoteDistance
}

// node is a node in this round.
type node struct {
	id      int
	cpus    set.CPUSet // online, as machine and window agree, without reserved ones
	count   float64    // of cpus
	online  float64    // CPUs, reserved ones too
	memory  unit.Opt[unit.Bytes]
	busy    unit.Opt[float64] // CPUs; projected, once something is unbound
	history []float64         // and then recent; see History
	recent  []float64
	p95     unit.Opt[float64] // of both; see p95Of
	hasP95  bool
}

// utilisation is busy/online CPUs.
func (n *node) utilisation() (float64, bool) {
	busy, ok := n.busy.Get()
	return busy / n.online, ok && n.online > 0
}

// load is a workload in this round.
type load struct {
	*window.Workload // of the window, which nobody changes
	*Memory          // of the next state, round.memories
	local            unit.Opt[unit.Ratio]
	target           unit.Ratio
	reads            unit.Opt[float64] // of DRAM in this window
	pages            []unit.Bytes      // anon + file by node; nil: unknown
	total            unit.Bytes
	traffic          float64 // bytes/s of DRAM reads; 0 when unknown
}

// newRound is number 1 of Step: it looks at the window and remembers it.
func newRound(m machine.Machine, cfg Config, st State, w window.Window) *round {
	r := &round{m: m, cfg: cfg, w: w, rules: make([]string, len(w.Workloads))}
	r.nodes = make([]node, len(w.Nodes))
	for i := range w.Nodes {
		r.nodes[i] = r.lookAt(&w.Nodes[i], st)
	}
	r.remember(st)
	pages := make([]unit.Bytes, 0, len(w.Workloads)*len(w.Nodes))
	locals := make([]unit.Ratio, 0, localHistory*(len(r.loads)+len(r.absent)))
	for i := range r.loads {
		l := &r.loads[i]
		r.observe(l, pages)
		locals = l.judge(&r.cfg, locals)
		pages = pages[:len(pages)+len(l.pages)]
	}
	for i := range r.absent {
		locals = r.absent[i].keepLocal(locals)
	}
	return r
}

func (r *round) lookAt(n *window.Node, st State) node {
	known, _ := r.m.Node(n.ID)
	online := known.CPUs.Intersect(n.CPUs)
	cpus, past := online.Minus(r.cfg.ReservedCPUs), st.history(n.ID)
	return node{
		id: n.ID, cpus: cpus, count: float64(cpus.Len()), online: float64(online.Len()),
		memory: n.Memory.V, busy: n.CPUBusy.V, history: past.old, recent: past.recent,
	}
}

// remember matches the window's workloads with the state's. Mostly they are the same,
// in the same order.
func (r *round) remember(st State) {
	r.loads, r.memories = make([]load, len(r.w.Workloads)), make([]Memory, len(r.w.Workloads))
	seen := make([]bool, len(st.Workloads))
	next := 0
	for i := range r.w.Workloads {
		wl := &r.w.Workloads[i]
		k, ok := next, next < len(st.Workloads) && st.Workloads[next].Workload == wl.ID
		if !ok {
			k, ok = st.index(wl.ID)
		}
		r.loads[i].Workload, r.loads[i].Memory = wl, &r.memories[i]
		r.memories[i].Workload = wl.ID
		if ok {
			r.memories[i], seen[k] = st.Workloads[k], true
			next = k + 1
		}
	}
	for k, old := range st.Workloads {
		if !seen[k] {
			old.Absent++
			r.absent = append(r.absent, old)
		}
	}
}

// observe fills in what the window says of a workload; its pages go to the end of
// pages, which has room for them.
func (r *round) observe(l *load, pages []unit.Bytes) {
	l.Absent = 0
	l.local, l.target = window.LocalAccess(l.Workload), l.Target.Or(r.cfg.Target)
	if len(l.AnonByNode) == len(r.nodes) {
		l.pages, _ = l.AppendPagesByNode(pages)
	}
	for _, p := range l.pages {
		l.total += p
	}
	if l.reads = unit.OptOf(l.Loads()); r.w.Length > 0 {
		l.traffic = l.reads.Or(0) * bytesPerLoad / r.w.Length.Seconds()
	}
	if cpu, ok := l.CPU.Get(); ok {
		a := r.cfg.Smoothing
		l.Demand = unit.Some(float64(a*cpu) + float64((1-a)*l.Demand.Or(cpu)))
	}
}

const bytesPerLoad = 64 // a DRAM read fetches a cache line; all CPUs with an event table so far

// judge counts the windows below target. An unknown ratio, or one from too few
// reads, neither counts nor resets. It returns locals with the workload's own.
func (l *load) judge(cfg *Config, locals []unit.Ratio) []unit.Ratio {
	local, ok := l.local.Get()
	if !ok || l.silent(cfg) {
		return l.keepLocal(locals)
	}
	if l.Below++; local >= l.target {
		l.Below = 0
	}
	return l.keepLocal(locals, local)
}

// keepLocal gives a memory its own copy of its ratios and these, the oldest dropped,
// at the end of all; it returns all. Memories share one slice, but no part of it.
func (m *Memory) keepLocal(all []unit.Ratio, and ...unit.Ratio) []unit.Ratio {
	if len(m.Local)+len(and) == 0 {
		return all
	}
	from := len(all)
	all = append(append(all, m.Local[max(0, len(m.Local)+len(and)-localHistory):]...), and...)
	m.Local = all[from:len(all):len(all)]
	return all
}

// silent says that this window's ratio means nothing.
func (l *load) silent(cfg *Config) bool { return l.idle(cfg) || l.quiet(cfg) }

func (l *load) idle(cfg *Config) bool { return l.CPU.Known() && l.CPU.Or(0) < cfg.MinCPU }

func (l *load) quiet(cfg *Config) bool {
	all, ok := l.reads.Get()
	return ok && all < float64(cfg.MinLoads)
}

// silence says why.
func (l *load) silence(cfg *Config) string {
	if l.idle(cfg) {
		return fmt.Sprintf("it used %.3g CPUs, too little to judge by", l.CPU.Or(0))
	}
	return fmt.Sprintf("it read DRAM %.0f times, too rarely to judge by", l.reads.Or(0))
}

// outcomes is number 2 of Step.
//
// Refused counts for set-cpus only: actuate has then put everything back, or
// given up. A refused move or set-mems leaves the CPUs bound, and Failed is
// retried by actuate. A drifted setting is not fought over; what is still ours
// of it (say the mems, when somebody else changed the CPUs) is given back.
func (r *round) outcomes() {
	for k := range r.w.Outcomes {
		o := &r.w.Outcomes[k]
		i, ok := r.w.WorkloadIndex(o.Step.Workload)
		if !ok {
			r.outcomeOfAbsent(o)
			continue
		}
		l := &r.loads[i]
		switch {
		case o.Status == action.Drifted && l.placed():
			r.drifted(i, o)
		case o.Status == action.Refused && o.Step.Kind == action.SetCPUs && l.placed():
			*l.Memory = l.release(r.cfg, r.w.Seq)
			r.decide(i, "mao.refused", wording{summary: sentence("binding it was refused", o.Detail, l)})
		case o.Status == action.Gone:
			l.Nodes, l.Aside, l.Since = set.NodeSet{}, set.NodeSet{}, 0
			r.decide(i, "mao.skip.gone", wording{summary: "it had vanished when it was to be changed; this is a new one of its name, or a late reading"})
		}
	}
}

func (r *round) drifted(i int, o *action.Outcome) {
	l := &r.loads[i]
	*l.Memory = l.release(r.cfg, r.w.Seq)
	reason := r.decide(i, "mao.drifted", wording{summary: sentence("somebody else changed its binding", o.Detail, l)})
	if l.Binding.OursCPUs || l.Binding.OursMems {
		r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: l.ID, Reason: reason})
	}
}

func sentence(what, detail string, l *load) string {
	if detail != "" {
		what += " (" + detail + ")"
	}
	return fmt.Sprintf("%s; left alone until window %d", what, l.NotBefore)
}

func (r *round) outcomeOfAbsent(o *action.Outcome) {
	for i := range r.absent {
		if r.absent[i].Workload == o.Step.Workload && o.Status == action.Gone {
			r.absent[i].Nodes, r.absent[i].Aside = set.NodeSet{}, set.NodeSet{}
		}
	}
}

// wording is what a reason says beyond its rule.
type wording struct {
	summary      string
	numbers      []action.Number
	alternatives []action.Alternative
}

// decide gives workload i its reason, unless it has one. It is for what is done, or
// was: an action follows, or may.
func (r *round) decide(i int, rule string, say wording) action.Reason {
	if r.reasons == nil {
		r.reasons = make([]action.Reason, len(r.rules))
	}
	if !r.decided(i) {
		r.rules[i] = rule
		r.reasons[i] = action.Reason{Rule: rule, Workload: r.loads[i].ID, Summary: say.summary, Numbers: say.numbers, Alternatives: say.alternatives}
	}
	return r.reasons[i]
}

// pass is decide for workloads that are left alone: only Step asks for the words.
func (r *round) pass(i int, rule string, say func() wording) {
	switch {
	case r.decided(i):
	case r.explain:
		r.decide(i, rule, say())
	default:
		r.rules[i] = rule
	}
}

func (r *round) decided(i int) bool { return r.rules[i] != "" }

// next is the state after this round. Utilisations go in as measured, not as
// projected, and after this round's P95 was taken: a node is judged by its past.
func (r *round) next(old State) State {
	st := State{Nodes: r.histories(old)}
	if all := append(r.memories, r.remembered()...); len(all) > 0 {
		slices.SortFunc(all, func(a, b Memory) int { return cmp.Compare(a.Workload, b.Workload) })
		st.Workloads = all
	}
	return st
}

func (r *round) histories(old State) []History {
	all := make([]History, 0, len(r.nodes))
	for i := range r.nodes {
		n := &r.nodes[i]
		past := History{Node: n.id, old: n.history, recent: n.recent}
		n.busy = r.w.Nodes[i].CPUBusy.V
		if u, ok := n.utilisation(); ok {
			past = past.with(u, r.cfg.HistoryWindows)
		}
		if past.len() > 0 {
			all = append(all, past)
		}
	}
	for _, h := range old.Nodes { // a node that is offline now keeps its past
		if _, here := r.w.NodeIndex(h.Node); !here {
			all = append(all, h)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b History) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// remembered are the absent ones not yet forgotten: a binding for ForgetAfter
// windows (a failed reading is no farewell), a back-off until it ends.
func (r *round) remembered() []Memory {
	var kept []Memory
	for _, m := range r.absent {
		if m.Absent > r.cfg.ForgetAfter {
			m.Nodes, m.Aside, m.Since = set.NodeSet{}, set.NodeSet{}, 0
		}
		if m.Absent <= r.cfg.ForgetAfter || r.w.Seq < m.NotBefore {
			kept = append(kept, m)
		}
	}
	return kept
}

// perSecond is a count of the window as a rate; 0 for a window without length.
func perSecond(count uint64, length time.Duration) float64 {
	if length <= 0 {
		return 0
	}
	return float64(count) / length.Seconds()
}
