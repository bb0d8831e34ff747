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
	var o Round
	next, actions := o.Step(m, cfg, st, w)
	return next, actions, o.Reasons()
}

// Decide is Step for those who have no use for words, such as a simulator of many
// servers: the same next state, the same actions with their whole reasons, and of
// each workload the rule that fired, in their order.
func Decide(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []string) {
	var r round
	r.begin(m, cfg, st, w) // 1
	next := r.run(st)
	return next, r.actions, r.rules
}

// run is numbers 2 to 7 of Step.
func (r *round) run(st State) State {
	r.outcomes()                              // 2
	unbound, widened := r.unbind(), r.widen() // 3, 4
	if !unbound && !widened {
		r.bind() // 5
	}
	r.keepAside() // 6
	r.makeRoom()  // 6
	r.followUp()  // 7
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
	reasons          []action.Reason   // of what was decided with words; else Rule is ""
	explain          bool              // searches are kept for words that may be asked for; see Round
	later            []func() wording  // those words; nil: they follow from the rule
	book             *ledger           // what nodes have given away; nil: to be added up anew
	scratch          search            // the last one; its slices are used again
	apart            unit.Opt[float64] // see remoteDistance
	binds            int               // in this round
	numbers          []action.Number   // see slab
	qualities        []Quality         // see learn
	likes            []Like
	spans            []spanOfNodes // see spanned
	largest          float64       // node's memory; 0: not looked at yet
	seconds          float64       // the window's length
	spare            spare
	wanted           []float64   // see widen.go; nil: to be added up anew
	mayUse           set.NodeSet // see usable
	said             string      // see countersOf
	saidLocal        string
	saidRemote       string
	groups           []group // see service.go
	groupOf          []int32 // by load, of groups; nil: not looked at yet
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
	past    string            // of both, in words; "": not said yet
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
	source           window.LocalSource // of local
	target           unit.Ratio
	reads            unit.Opt[float64] // of DRAM in this window
	pages            []unit.Bytes      // anon + file by node; nil: unknown
	total            unit.Bytes
	anon             unit.Bytes // in all
	knowsAnon        bool
	weaker           bool // its ratio is of a weaker source than lately; see judge
	rising           bool // it has more anonymous memory than ever
	span             span // of spanOf; see round.spanOf
	spanOf           set.NodeSet
	traffic          float64 // bytes/s between caches and memory, else of DRAM reads; 0 when unknown
}

// begin is number 1 of Step: it looks at the window and remembers it. What a round
// before had of slices is used again, but nothing that a state or a reason may share.
func (r *round) begin(m machine.Machine, cfg Config, st State, w window.Window) {
	n := len(w.Workloads)
	*r = round{
		m: m, cfg: cfg, w: w, explain: r.explain, scratch: r.scratch, spare: r.spare, absent: r.absent[:0],
		nodes: again(r.nodes, len(w.Nodes)), loads: again(r.loads, n), rules: again(r.rules, n),
		reasons: again(r.reasons, n), later: r.later, seconds: w.Length.Seconds(),
	}
	if r.explain {
		r.later = again(r.later, n)
	}
	for i := range w.Nodes {
		r.nodes[i] = r.lookAt(&w.Nodes[i], st)
	}
	r.remember(st)
	r.spare.sets, r.spare.means = r.spare.sets[:0], r.spare.means[:0]
	r.spare.pages = empty(r.spare.pages, n*len(w.Nodes))
	pages := r.spare.pages
	locals := make([]unit.Ratio, 0, localHistory*(len(r.loads)+len(r.absent)))
	for i := range r.loads {
		l := &r.loads[i]
		r.observe(l, pages)
		locals = l.judge(&r.cfg, w.Seq, locals)
		pages = pages[:len(pages)+len(l.pages)]
	}
	for i := range r.absent {
		locals = r.absent[i].keepLocal(locals)
	}
}

// spare are slices of the last round, to be used again.
type spare struct {
	pages   []unit.Bytes
	seen    []bool
	ids     []int
	growing []int
	over    []int
	sets    []shortage
	book    ledger
	trial   ledger // of allFit
	means   []mean
	classes []string // services by load, of groupOf and groups; see service.go
	groupOf []int32
	groups  []group
}

// again is a slice of n zero elements, in the same place if there is room.
func again[T any](was []T, n int) []T {
	if cap(was) < n {
		return make([]T, n)
	}
	was = was[:n]
	clear(was)
	return was
}

// empty is a slice with room for n elements, in the same place if there is as much.
func empty[T any](was []T, n int) []T {
	if cap(was) < n {
		return make([]T, 0, n)
	}
	return was[:0]
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
	r.memories = make([]Memory, len(r.w.Workloads)) // the next state's
	r.spare.seen = again(r.spare.seen, len(st.Workloads))
	seen := r.spare.seen
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
	for k := range st.Workloads {
		if !seen[k] {
			r.absent = append(r.absent, st.Workloads[k])
			r.absent[len(r.absent)-1].Absent++
		}
	}
}

// observe fills in what the window says of a workload; its pages go to the end of
// pages, which has room for them.
func (r *round) observe(l *load, pages []unit.Bytes) {
	l.Absent = 0
	l.local, l.source = window.LocalAccessFrom(l.Workload)
	l.target = l.Target.Or(r.cfg.Target)
	l.weigh(len(r.nodes), pages)
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

// weigh adds up its memory, by node and in all, in one pass: of 200 workloads it is more
// than a core's caches hold.
func (l *load) weigh(nodes int, pages []unit.Bytes) {
	known := len(l.AnonByNode) > 0
	l.knowsAnon = known
	known = known && len(l.AnonByNode) == nodes && len(l.FileByNode) == nodes
	from := len(pages)
	for i := range l.AnonByNode {
		anon, ok := l.AnonByNode[i].Get()
		l.anon += anon
		l.knowsAnon = l.knowsAnon && ok
		if known = known && ok; known {
			file, ok := l.FileByNode[i].Get()
			known = ok
			pages = append(pages, anon+file)
		}
	}
	if !known {
		return
	}
	l.pages = pages[from:len(pages):len(pages)]
	for _, p := range l.pages {
		l.total += p
	}
}

const bytesPerLoad = 64 // a DRAM read fetches a cache line; all CPUs with an event table so far

// judge counts the windows below target. An unknown ratio, one from too few reads, or
// from a weaker source than lately, neither counts nor resets: counters may be another
// workload's for a while, and what is spread over two nodes is then half local by any
// estimate. Another source starts anew. It returns locals with the workload's own.
func (l *load) judge(cfg *Config, seq uint64, locals []unit.Ratio) []unit.Ratio {
	local, ok := l.local.Get()
	if !ok || l.silent(cfg) {
		return l.keepLocal(locals)
	}
	from := l.source
	if l.weaker = l.From != 0 && from > l.From && seq >= l.LocalAt && seq-l.LocalAt <= uint64(cfg.EstimateAfter); l.weaker {
		return l.keepLocal(locals)
	}
	if l.From != from {
		l.From, l.Below, l.Local = from, 0, nil
	}
	l.LocalAt = seq
	if l.Below++; !l.misses(cfg, local) {
		l.Below = 0
	}
	return l.keepLocal(locals, local)
}

// misses says that a ratio is below target: an estimate by its error, where the
// configuration demands that.
func (l *load) misses(cfg *Config, local unit.Ratio) bool {
	if cfg.EstimateMargin > 0 && l.From != window.LocalCounted && local < l.target {
		local += unit.Ratio(float64(float64(cfg.EstimateMargin) * float64(window.LocalAccessError(l.Workload).Or(0))))
	}
	return local < l.target
}

// patience is how many windows below target in a row it takes.
func (l *load) patience(cfg *Config) int {
	if l.From == window.LocalCounted {
		return cfg.BindAfter
	}
	return max(cfg.BindAfter, cfg.EstimateBindAfter)
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
// given up; but for a wider binding that was refused and left as it was. A refused move or set-mems leaves the CPUs bound, and Failed is
// retried by actuate. A drifted setting is not fought over; what is still ours
// of it (say the mems, when somebody else changed the CPUs) is given back.
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
			r.decide(i, "mao.refused", wording{summary: sentence(refusal(o), o.Detail, l)})
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

func refusal(o *action.Outcome) string {
	if o.Undone {
		return "its binding was undone on the way"
	}
	return "binding it was refused"
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
	if !r.decided(i) {
		r.rules[i] = rule
		r.reasons[i] = say.reason(rule, r.loads[i].ID)
	}
	return r.reasons[i]
}

func (say wording) reason(rule, id string) action.Reason {
	return action.Reason{Rule: rule, Workload: id, Summary: say.summary, Numbers: say.numbers, Alternatives: say.alternatives}
}

// pass is decide for workloads that are left alone: the words are those of the rule
// (wordsOf), and are found when somebody asks.
func (r *round) pass(i int, rule string) {
	if !r.decided(i) {
		r.rules[i] = rule
	}
}

// passSaying is pass where the words do not follow from the rule.
func (r *round) passSaying(i int, rule string, say func() wording) {
	if r.decided(i) {
		return
	}
	r.rules[i] = rule
	if r.explain {
		r.later[i] = say
	}
}

func (r *round) decided(i int) bool { return r.rules[i] != "" }

// next is the state after this round. Utilisations go in as measured, not as
// projected, and after this round's P95 was taken: a node is judged by its past.
func (r *round) next(old State) State {
	st := State{Nodes: r.histories(old), Workloads: r.memories}
	byID := func(a, b Memory) int { return cmp.Compare(a.Workload, b.Workload) }
	if kept := r.remembered(); len(kept) > 0 || !r.ordered() {
		st.Workloads = slices.Concat(r.memories, kept) // not in place: loads point to memories
		slices.SortFunc(st.Workloads, byID)
	}
	if len(st.Workloads) == 0 {
		st.Workloads = nil
	}
	return st
}

// ordered says that the window's workloads are in the order of their IDs.
func (r *round) ordered() bool {
	for i := 1; i < len(r.memories); i++ {
		if r.memories[i-1].Workload > r.memories[i].Workload {
			return false
		}
	}
	return true
}

func (r *round) histories(old State) []History {
	all := make([]History, 0, len(r.nodes))
	for i := range r.nodes {
		n := node{busy: r.w.Nodes[i].CPUBusy.V, online: r.nodes[i].online}
		past := History{Node: r.nodes[i].id, old: r.nodes[i].history, recent: r.nodes[i].recent}
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
