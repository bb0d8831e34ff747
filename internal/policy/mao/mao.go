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
	r.outcomes()                 // 2
	if !r.unbind() {             // 3
		r.bind() // 4
	}
	r.keepAside() // 5
	r.makeRoom()  // 5
	r.leave()
	return r.next(st), r.actions, r.reasons
}

// round is one Step at work. It owns what it changes; nodes are parallel to
// Window.Nodes; loads, reasons to Window.Workloads.
type round struct {
	m       machine.Machine
	cfg     Config
	w       window.Window
	nodes   []node
	loads   []load
	absent  []Memory // remembered, but not in this window
	actions []action.Action
	reasons []action.Reason // Rule "": not decided yet
	book    *ledger         // what nodes have given away; nil: to be added up anew
}

// node is a node in this round.
type node struct {
	id      int
	cpus    set.CPUSet // online, as machine and window agree, without reserved ones
	online  float64    // CPUs, reserved ones too
	memory  unit.Opt[unit.Bytes]
	busy    unit.Opt[float64] // CPUs; projected, once something is unbound
	history []float64
	p95     unit.Opt[float64] // of history; see p95Of
	hasP95  bool
}

func (n node) count() float64 { return float64(n.cpus.Len()) }

// utilisation is busy/online CPUs.
func (n node) utilisation() (float64, bool) {
	busy, ok := n.busy.Get()
	return busy / n.online, ok && n.online > 0
}

// load is a workload in this round.
type load struct {
	window.Workload
	Memory
	features window.Features
	target   unit.Ratio
	pages    []unit.Bytes // anon + file by node; nil: unknown
	total    unit.Bytes
	traffic  float64 // bytes/s of DRAM reads; 0 when unknown
}

// newRound is number 1 of Step: it looks at the window and remembers it.
func newRound(m machine.Machine, cfg Config, st State, w window.Window) *round {
	r := &round{m: m, cfg: cfg, w: w, reasons: make([]action.Reason, len(w.Workloads))}
	for _, n := range w.Nodes {
		known, _ := m.Node(n.ID)
		online := known.CPUs.Intersect(n.CPUs)
		r.nodes = append(r.nodes, node{
			id: n.ID, cpus: online.Minus(cfg.ReservedCPUs), online: float64(online.Len()),
			memory: n.Memory.V, busy: n.CPUBusy.V, history: st.history(n.ID),
		})
	}
	for _, wl := range w.Workloads {
		r.loads = append(r.loads, r.observe(wl, st.find(wl.ID)))
	}
	for _, old := range st.Workloads {
		if _, here := w.Workload(old.Workload); !here {
			old.Absent++
			r.absent = append(r.absent, old)
		}
	}
	return r
}

func (r *round) observe(wl window.Workload, mem Memory) load {
	l := load{Workload: wl, Memory: mem, features: window.FeaturesOf(wl, r.w.Length), target: wl.Target.Or(r.cfg.Target)}
	l.Absent = 0
	if pages, ok := wl.PagesByNode(); ok && len(pages) == len(r.nodes) {
		l.pages = pages
		for _, p := range pages {
			l.total += p
		}
	}
	if all, ok := wl.Loads(); ok && r.w.Length > 0 {
		l.traffic = all * bytesPerLoad / r.w.Length.Seconds()
	}
	if cpu, ok := wl.CPU.Get(); ok {
		a := r.cfg.Smoothing
		l.Demand = unit.Some(a*cpu + (1-a)*l.Demand.Or(cpu))
	}
	return l.judge(r.cfg)
}

const bytesPerLoad = 64 // a DRAM read fetches a cache line; all CPUs with an event table so far

// judge counts the windows below target. An unknown ratio, or one from too few
// reads, neither counts nor resets.
func (l load) judge(cfg Config) load {
	local, ok := l.features.LocalAccessRatio.Get()
	if !ok || l.noSignal(cfg) != "" {
		return l
	}
	l.Local = appendBounded(l.Local, local, localHistory)
	if l.Below++; local >= l.target {
		l.Below = 0
	}
	return l
}

// noSignal says why this window's ratio means nothing; "" when it does.
func (l load) noSignal(cfg Config) string {
	if cpu, ok := l.CPU.Get(); ok && cpu < cfg.MinCPU {
		return fmt.Sprintf("it used %.3g CPUs, too little to judge by", cpu)
	}
	if all, ok := l.Loads(); ok && all < float64(cfg.MinLoads) {
		return fmt.Sprintf("it read DRAM %.0f times, too rarely to judge by", all)
	}
	return ""
}

// outcomes is number 2 of Step.
//
// Refused counts for set-cpus only: actuate has then put everything back, or
// given up. A refused move or set-mems leaves the CPUs bound, and Failed is
// retried by actuate. A drifted setting is not fought over; what is still ours
// of it (say the mems, when somebody else changed the CPUs) is given back.
func (r *round) outcomes() {
	for _, o := range r.w.Outcomes {
		i, ok := r.loadIndex(o.Step.Workload)
		if !ok {
			r.outcomeOfAbsent(o)
			continue
		}
		l := &r.loads[i]
		switch {
		case o.Status == action.Drifted && l.placed():
			r.drifted(i, o)
		case o.Status == action.Refused && o.Step.Kind == action.SetCPUs && l.placed():
			l.Memory = l.release(r.cfg, r.w.Seq)
			r.decide(i, "mao.refused", sentence("binding it was refused", o.Detail, l), nil)
		case o.Status == action.Gone:
			l.Nodes, l.Aside, l.Since = set.NodeSet{}, set.NodeSet{}, 0
			r.decide(i, "mao.skip.gone", "it had vanished when it was to be changed; this is a new one of its name, or a late reading", nil)
		}
	}
}

func (r *round) drifted(i int, o action.Outcome) {
	l := &r.loads[i]
	l.Memory = l.release(r.cfg, r.w.Seq)
	reason := r.decide(i, "mao.drifted", sentence("somebody else changed its binding", o.Detail, l), nil)
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

func (r *round) outcomeOfAbsent(o action.Outcome) {
	for i := range r.absent {
		if r.absent[i].Workload == o.Step.Workload && o.Status == action.Gone {
			r.absent[i].Nodes, r.absent[i].Aside = set.NodeSet{}, set.NodeSet{}
		}
	}
}

func (r *round) loadIndex(id string) (int, bool) {
	return slices.BinarySearchFunc(r.loads, id, func(l load, id string) int { return cmp.Compare(l.ID, id) })
}

// decide gives workload i its reason, unless it has one.
func (r *round) decide(i int, rule, summary string, numbers []action.Number) action.Reason {
	if r.reasons[i].Rule == "" {
		r.reasons[i] = action.Reason{Rule: rule, Workload: r.loads[i].ID, Summary: summary, Numbers: numbers}
	}
	return r.reasons[i]
}

func (r *round) decided(i int) bool { return r.reasons[i].Rule != "" }

// next is the state after this round. Utilisations go in as measured, not as
// projected, and after this round's P95 was taken: a node is judged by its past.
func (r *round) next(old State) State {
	var st State
	for i, n := range r.nodes {
		past := n.history
		n.busy = r.w.Nodes[i].CPUBusy.V
		if u, ok := n.utilisation(); ok {
			past = appendBounded(past, u, r.cfg.HistoryWindows)
		}
		if len(past) > 0 {
			st.Nodes = append(st.Nodes, History{Node: n.id, Utilisation: past})
		}
	}
	for _, h := range old.Nodes { // a node that is offline now keeps its past
		if _, here := r.w.NodeIndex(h.Node); !here {
			st.Nodes = append(st.Nodes, h)
		}
	}
	slices.SortFunc(st.Nodes, func(a, b History) int { return cmp.Compare(a.Node, b.Node) })
	for _, l := range r.loads {
		st.Workloads = append(st.Workloads, l.Memory)
	}
	st.Workloads = append(st.Workloads, r.remembered()...)
	slices.SortFunc(st.Workloads, func(a, b Memory) int { return cmp.Compare(a.Workload, b.Workload) })
	return st
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
