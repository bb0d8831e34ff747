// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one round of the optimizer. It returns the next state, the actions, and exactly
// one reason for each of the window's workloads, in their order. The numbers are those of
// the package comment.
func Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []action.Reason) {
	r := newRound(m, cfg, st, w) // 1
	r.outcomes()                 // 2
	r.groupAll()
	unbound, widened := r.unbind(), r.widen() // 3, 4
	if !unbound && !widened {
		r.bind() // 5
	}
	r.keepAside() // 6
	r.makeRoom()  // 6
	r.followUp()  // 7
	r.leave()
	return r.next(st), r.actions, r.reasons
}

// round holds the data of one Step. It owns what it changes. nodes are parallel to
// Window.Nodes; loads and reasons to Window.Workloads.
type round struct {
	m     machine.Machine
	cfg   Config
	w     window.Window
	nodes []node
	loads []load
	// memories are those of the next state. absent are remembered too, but are not in this
	// window.
	memories, absent []Memory
	actions          []action.Action
	reasons          []action.Reason   // without a rule: not decided yet
	book             *ledger           // what nodes have given away; nil: must be added up anew
	wanted           []float64         // see widen.go; nil: must be added up anew
	apart            unit.Opt[float64] // see remoteDistance
	binds            int               // in this round
	usable           set.NodeSet       // nodes with CPUs to bind to that the machine knows
	largest          float64           // memory of the largest node
	seconds          float64           // the window's length
	groups           []*group          // see service.go
	groupOf          []*group          // by load; nil: no other replica is here
}

// node is a node in this round.
type node struct {
	id      int
	cpus    set.CPUSet // online in both machine and window, without reserved CPUs
	count   float64    // of cpus
	online  float64    // CPUs, including reserved ones
	memory  unit.Opt[unit.Bytes]
	busy    unit.Opt[float64] // CPUs; projected after an unbind
	history []float64
	p95     unit.Opt[float64] // of the history; unknown while that is too short
}

// utilisation is busy/online CPUs.
func (n *node) utilisation() (float64, bool) {
	busy, ok := n.busy.Get()
	return busy / n.online, ok && n.online > 0
}

// load is a workload in this round.
type load struct {
	*window.Workload // the window's, which is never changed
	*Memory          // in round.memories, for the next state
	local            unit.Opt[unit.Ratio]
	source           window.LocalSource // of local
	target           unit.Ratio
	reads            unit.Opt[float64] // of DRAM in this window
	pages            []unit.Bytes      // anon + file by node; nil: unknown
	total            unit.Bytes
	anon             unit.Bytes // total
	knowsAnon        bool
	weaker           bool    // its ratio has a weaker source than recently; see judge
	rising           bool    // it has more anonymous memory than ever
	traffic          float64 // bytes/s between caches and memory, else of DRAM reads; 0 when unknown
}

// newRound is number 1 of Step: it reads the window and remembers it.
func newRound(m machine.Machine, cfg Config, st State, w window.Window) *round {
	n := len(w.Workloads)
	r := &round{
		m: m, cfg: cfg, w: w, seconds: w.Length.Seconds(),
		nodes: make([]node, len(w.Nodes)), loads: make([]load, n), memories: make([]Memory, n), reasons: make([]action.Reason, n),
	}
	var usable []int
	for i := range w.Nodes {
		r.nodes[i] = r.lookAt(&w.Nodes[i], st)
		r.largest = max(r.largest, float64(r.nodes[i].memory.Or(0)))
		if !r.nodes[i].cpus.IsEmpty() {
			usable = append(usable, r.nodes[i].id)
		}
	}
	r.usable = set.FromNodes(usable...)
	r.remember(st)
	for i := range r.loads {
		r.observe(&r.loads[i])
		r.loads[i].judge(&r.cfg, w.Seq)
	}
	return r
}

func (r *round) lookAt(n *window.Node, st State) node {
	known, _ := r.m.Node(n.ID)
	online := known.CPUs.Intersect(n.CPUs)
	cpus, past := online.Minus(r.cfg.ReservedCPUs), st.history(n.ID)
	return node{
		id: n.ID, cpus: cpus, count: float64(cpus.Len()), online: float64(online.Len()), memory: n.Memory.V, busy: n.CPUBusy.V,
		history: past.Utilisation, p95: past.p95(r.cfg.MinHistory),
	}
}

// remember matches the window's workloads with the state's.
func (r *round) remember(st State) {
	seen := make([]bool, len(st.Workloads))
	next := 0 // usually they are the same, in the same order
	for i := range r.w.Workloads {
		wl := &r.w.Workloads[i]
		r.loads[i].Workload, r.loads[i].Memory = wl, &r.memories[i]
		r.memories[i].Workload = wl.ID
		k, ok := next, next < len(st.Workloads) && st.Workloads[next].Workload == wl.ID
		if !ok {
			k, ok = st.index(wl.ID)
		}
		if ok {
			r.memories[i], seen[k], next = st.Workloads[k], true, k+1
		}
	}
	for k := range st.Workloads {
		if !seen[k] {
			r.absent = append(r.absent, st.Workloads[k])
			r.absent[len(r.absent)-1].Absent++
		}
	}
}

// observe fills in what the window says about a workload.
func (r *round) observe(l *load) {
	l.Absent = 0
	l.local, l.source = window.LocalAccessFrom(l.Workload)
	l.target = l.Target.Or(r.cfg.Target)
	l.weigh(len(r.nodes))
	l.grow(&r.cfg, r.seconds)
	if l.reads = unit.OptOf(l.Loads()); r.w.Length > 0 {
		bytes, ok := l.Traffic.Get()
		l.traffic = float64(bytes) / r.seconds
		if !ok {
			l.traffic = l.reads.Or(0) * bytesPerLoad / r.seconds
		}
	}
	if cpu, ok := l.CPU.Get(); ok {
		a := r.cfg.Smoothing
		l.Demand = unit.Some(float64(a*cpu) + float64((1-a)*l.Demand.Or(cpu)))
	}
}

// weigh adds up its memory, by node and in total.
func (l *load) weigh(nodes int) {
	l.anon, l.knowsAnon = window.SumBytes(l.AnonByNode)
	if pages, ok := l.AppendPagesByNode(make([]unit.Bytes, 0, nodes)); ok && len(pages) == nodes {
		l.pages = pages
		for _, p := range pages {
			l.total += p
		}
	}
}

const bytesPerLoad = 64 // a DRAM read fetches a cache line; true for all CPUs that have an event table

// judge counts the windows below target. A ratio that is unknown, comes from too few reads,
// or has a weaker source than recently neither counts nor resets. Counters may serve
// another workload for a while, and any estimate then gives half local for a workload
// spread over two nodes. Another source starts the count anew.
func (l *load) judge(cfg *Config, seq uint64) {
	local, ok := l.local.Get()
	if !ok || l.silent(cfg) {
		return
	}
	from := l.source
	if l.weaker = l.From != 0 && from > l.From && seq >= l.LocalAt && seq-l.LocalAt <= uint64(cfg.EstimateAfter); l.weaker {
		return
	}
	if l.From != from {
		l.From, l.Below, l.Local = from, 0, nil
	}
	l.LocalAt = seq
	if l.Below++; !l.misses(cfg, local) {
		l.Below = 0
	}
	recent := l.Local[max(0, len(l.Local)+1-localHistory):]
	l.Local = slices.Concat(recent, []unit.Ratio{local}) // the old state keeps its own
}

// misses reports that a ratio is below target; for an estimate, by its error, where the
// configuration demands that.
func (l *load) misses(cfg *Config, local unit.Ratio) bool {
	if cfg.EstimateMargin > 0 && l.From != window.LocalCounted && local < l.target {
		local += unit.Ratio(float64(float64(cfg.EstimateMargin) * float64(window.LocalAccessError(l.Workload).Or(0))))
	}
	return local < l.target
}

// patience is the number of windows below target in a row before a bind.
func (l *load) patience(cfg *Config) int {
	if l.From == window.LocalCounted {
		return cfg.BindAfter
	}
	return max(cfg.BindAfter, cfg.EstimateBindAfter)
}

// silent reports that this window's ratio means nothing.
func (l *load) silent(cfg *Config) bool { return l.idle(cfg) || l.quiet(cfg) }

func (l *load) idle(cfg *Config) bool { return l.CPU.Known() && l.CPU.Or(0) < cfg.MinCPU }

func (l *load) quiet(cfg *Config) bool {
	all, ok := l.reads.Get()
	return ok && all < float64(cfg.MinLoads)
}

// outcomes is number 2 of Step.
//
// Refused counts for set-cpus only: then actuate has put everything back, or given up. The
// exception is a wider binding that was refused and left as it was. A refused move or
// set-mems leaves the CPUs bound, and actuate retries what failed. homenode does not fight
// over a setting that drifted; what it still holds (say the mems, when another process
// changed the CPUs) is given back.
func (r *round) outcomes() {
	for k := range r.w.Outcomes {
		o := &r.w.Outcomes[k]
		if o.Step.Kind == action.SetClass {
			r.classOutcome(o)
			continue
		}
		i, ok := r.w.WorkloadIndex(o.Step.Workload)
		if !ok {
			r.outcomeOfAbsent(o)
			continue
		}
		l := &r.loads[i]
		switch {
		case o.Status == action.Drifted && l.placed():
			r.drifted(i, o)
		case o.Stays && o.Status == action.Refused && o.Step.Nodes == l.Nodes && !l.Was.IsEmpty():
			r.staysNarrow(l)
		case o.Status == action.Refused && o.Step.Kind == action.SetCPUs && l.placed():
			*l.Memory = l.release(r.cfg, r.w.Seq)
			r.decide(i, l.ended("mao.refused", o))
		case o.Status == action.Gone:
			l.Nodes, l.Aside, l.Since = set.NodeSet{}, set.NodeSet{}, 0
			r.decide(i, action.Reason{Rule: "mao.skip.gone"})
		}
	}
}

func (r *round) drifted(i int, o *action.Outcome) {
	l := &r.loads[i]
	*l.Memory = l.release(r.cfg, r.w.Seq)
	reason := r.decide(i, l.ended("mao.drifted", o))
	if l.Binding.OursCPUs || l.Binding.OursMems {
		r.actions = append(r.actions, action.Action{Kind: action.Unbind, Workload: l.ID, Reason: reason})
	}
}

// ended is the reason why a binding has ended.
func (l *load) ended(rule string, o *action.Outcome) action.Reason {
	why := action.Reason{Rule: rule, Detail: o.Detail, Numbers: []action.Number{l.until()}}
	if o.Why.Rule != "" {
		return why.Because(o.Why)
	}
	return why
}

func (r *round) outcomeOfAbsent(o *action.Outcome) {
	for i := range r.absent {
		if r.absent[i].Workload == o.Step.Workload && o.Status == action.Gone {
			r.absent[i].Nodes, r.absent[i].Aside = set.NodeSet{}, set.NodeSet{}
		}
	}
}

// decide gives workload i its reason, unless it has one, and returns the reason it has.
func (r *round) decide(i int, why action.Reason) action.Reason {
	if !r.decided(i) {
		why.Workload = r.loads[i].ID
		r.reasons[i] = why
	}
	return r.reasons[i]
}

func (r *round) decided(i int) bool { return r.reasons[i].Rule != "" }

// next is the state after this round. Utilisations are stored as measured, not as
// projected, and after this round's P95 was taken: a node is judged by its past.
func (r *round) next(old State) State {
	st := State{Nodes: r.histories(old), Workloads: r.memories}
	byID := func(a, b Memory) int { return cmp.Compare(a.Workload, b.Workload) }
	if kept := r.remembered(); len(kept) > 0 || !slices.IsSortedFunc(r.memories, byID) {
		st.Workloads = slices.Concat(r.memories, kept) // not in place: loads point to memories
		slices.SortFunc(st.Workloads, byID)
	}
	if len(st.Workloads) == 0 {
		st.Workloads = nil
	}
	return st
}

func (r *round) histories(old State) []History {
	var all []History
	for i := range r.nodes {
		n := node{busy: r.w.Nodes[i].CPUBusy.V, online: r.nodes[i].online}
		past := History{Node: r.nodes[i].id, Utilisation: r.nodes[i].history}
		if u, ok := n.utilisation(); ok {
			past = past.with(u, r.cfg.HistoryWindows)
		}
		if len(past.Utilisation) > 0 {
			all = append(all, past)
		}
	}
	for _, h := range old.Nodes { // a node that is offline now keeps its past
		if _, here := r.w.NodeIndex(h.Node); !here {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b History) int { return cmp.Compare(a.Node, b.Node) })
	return all
}

// remembered are the absent workloads not yet forgotten: a binding for ForgetAfter windows
// (after one failed reading it is not gone), a back-off until it ends.
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
