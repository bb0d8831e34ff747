// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// When binding is not enough, number 7 of the package comment. The paper names it as
// future work: contention isolation by CAT/MBA "when latency drops without CPU
// pressure", moving the working set, a report to the cluster scheduler.
//
//  1. Contention: a bound workload is at home (on target, or its pages are there), does
//     not lack CPU, and is worse than its own past at the same load by Rise, After
//     windows in a row. Worse is its latency, else the uncore penalty, else the stall
//     ratio, else misses an instruction: the first that is known (quality.go). What is
//     not at home yet is the actuator's: it moves the hot pages first.
//  2. The neighbour that pollutes most: of those that use CPU on its nodes, are not
//     approved, are nobody's to spare (Never) and are not isolated, the one with the
//     largest share of the last-level caches there, or of the memory traffic; at least
//     MinShare. A share is of what the caches hold and the controllers served; where that
//     is not known, of what all that run there have together, if that is known of each
//     (RMIDs are few). Unknown is no evidence: then nobody is isolated.
//  3. It is kept to the first of Steps. After Watch windows that must have won back Gain
//     of what was lost. Then the next step, while it is still worse; once it is not, the
//     step stays. If it did not help it is given back, and the next neighbour is tried.
//  4. What stays is given back after Hold windows, to see whether it is still needed; and
//     when the one is unbound, or the other approved; when either is gone for longer than
//     a failed reading is.
//  5. Where nobody is left to try, it is escalated with the evidence. For Cooldown windows
//     nothing more is tried, and what it does then is what it is held against.
//
// One new isolation a window, of all workloads: each is judged by what it alone did.
//
// An isolation is a lease: it is asked for anew in each window in which the state has it
// (Renew), and actuate gives back what nobody asks for. So there is one truth of it, and
// nothing that is forgotten here stays behind there. A workload has one reason a window,
// whatever is done to it: what else happens to a neighbour does not keep it isolated.

// Isolate bounds what follows when binding is not enough. All figures are our choice.
type Isolate struct {
	Enabled  bool           `yaml:"enabled" json:"enabled"`
	Rise     unit.Ratio     `yaml:"rise" json:"rise"`           // above its own past, of that: worse
	Pressure unit.Ratio     `yaml:"pressure" json:"pressure"`   // of the time one of its threads waited for a CPU, or of its quota's periods throttled: above, CPU is what it lacks
	After    int            `yaml:"after" json:"after"`         // windows in a row; more is calmer and later
	MinPast  int            `yaml:"min_past" json:"min_past"`   // windows at a load before they are a past
	MinShare unit.Ratio     `yaml:"min_share" json:"min_share"` // of the caches' contents or the traffic that a neighbour must have
	Steps    []action.Class `yaml:"steps" json:"steps"`         // one after the other, ever tighter
	Watch    int            `yaml:"watch" json:"watch"`         // windows in which a step must help
	Gain     unit.Ratio     `yaml:"gain" json:"gain"`           // of what was lost that it must win back
	Hold     uint64         `yaml:"hold" json:"hold"`           // windows after which what helped is given back, to see
	Cooldown uint64         `yaml:"cooldown" json:"cooldown"`   // windows between two escalations of a workload
	Never    []string       `yaml:"never" json:"never"`         // workloads and services that are never isolated
}

func defaultIsolate() Isolate {
	return Isolate{
		Enabled: true, Rise: 0.25, Pressure: 0.05, After: 3, MinPast: 20, MinShare: 0.1,
		Steps: []action.Class{{Cache: 0.5, Bandwidth: 0.7}, {Cache: 0.25, Bandwidth: 0.4}},
		Watch: 6, Gain: 0.25, Hold: 360, Cooldown: 360,
	}
}

func (c Isolate) validate() error {
	for _, s := range []struct {
		name  string
		value unit.Ratio
	}{{"rise", c.Rise}, {"pressure", c.Pressure}, {"min_share", c.MinShare}, {"gain", c.Gain}} {
		if !s.value.Valid() {
			return fmt.Errorf("mao: isolate.%s is %v: it must be between 0 and 1", s.name, float64(s.value))
		}
	}
	if c.After < 1 || c.MinPast < 1 || c.Watch < 1 || c.Hold < 1 || c.Cooldown < 1 {
		return fmt.Errorf("mao: isolate has after %d, min_past %d, watch %d, hold %d, cooldown %d: they must be at least 1", c.After, c.MinPast, c.Watch, c.Hold, c.Cooldown)
	}
	for i, s := range c.Steps {
		if !s.Cache.Valid() || !s.Bandwidth.Valid() || s.None() {
			return fmt.Errorf("mao: isolate.steps[%d] is cache %v, bandwidth %v: they must be between 0 and 1, and not both 0", i, float64(s.Cache), float64(s.Bandwidth))
		}
	}
	return nil
}

// followUp is all of it.
func (r *round) followUp() {
	if !r.cfg.Isolate.Enabled {
		r.freeAll()
		return
	}
	fresh := false
	for i := range r.loads {
		l := &r.loads[i]
		judged := r.assess(l)
		switch q := l.Quality; {
		case q == nil:
		case q.Neighbour != "":
			r.watch(i, judged)
		case judged && r.contended(l) && !fresh && !r.decided(i):
			fresh = r.isolate(i)
		}
	}
	r.renew()
}

// renew asks for what stays, also on behalf of those that one reading missed.
func (r *round) renew() {
	for _, list := range [...][]Memory{r.memories, r.absent} {
		for k := range list {
			m := &list[k]
			q := m.Quality
			if q.neighbour() == "" || q.Since == r.w.Seq && !q.Held || q.Step > len(r.cfg.Isolate.Steps) || m.Absent > r.cfg.ForgetAfter {
				continue // asked for just now, by setClass; or wanted no more
			}
			class := r.cfg.Isolate.Steps[q.Step-1]
			r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: q.Neighbour, Class: &class, Renew: true,
				Reason: action.Reason{Rule: "mao.isolate", Workload: q.Neighbour}})
		}
	}
}

// freeAll gives back what was isolated before that was switched off.
func (r *round) freeAll() {
	for i := range r.loads {
		if l := &r.loads[i]; l.Quality.neighbour() != "" {
			r.over(l, l.Quality.free(), "isolation is switched off")
		}
	}
	for i := range r.absent {
		if m := &r.absent[i]; m.Quality.neighbour() != "" {
			m.Quality = m.Quality.free()
		}
	}
}

// contended is number 1.
func (r *round) contended(l *load) bool {
	return l.bound() && l.Quality.Worse >= r.cfg.Isolate.After && r.atHome(l) && !r.starved(l)
}

// isolate is numbers 2 and 5 for workload i: it reports whether a neighbour is isolated.
func (r *round) isolate(i int) bool {
	l := &r.loads[i]
	if r.w.Seq < l.Quality.Quiet {
		r.pass(i, "mao.keep.contended")
		return false
	}
	k, part, what := r.polluter(l)
	if k < 0 || len(r.cfg.Isolate.Steps) == 0 {
		r.escalate(i)
		return false
	}
	next := *l.Quality
	next.Neighbour, next.Step, next.Since, next.Before, next.Held = r.loads[k].ID, 1, r.w.Seq, next.Ratio, false
	l.Quality = &next
	r.setClass(i, k, part, what)
	return true
}

func (r *round) contendedWords(l *load) wording {
	return wording{summary: fmt.Sprintf("it is %.0f%% worse than it was at the same load, nothing here helped, and that was escalated: nothing more is tried before window %d",
		(l.Quality.Ratio-1)*100, l.Quality.Quiet), numbers: r.contention(l)}
}

// setClass asks for the step that workload i's quality says, of workload k.
func (r *round) setClass(i, k int, part float64, what string) {
	l, n := &r.loads[i], &r.loads[k]
	class := r.cfg.Isolate.Steps[l.Quality.Step-1]
	numbers := r.contention(l)
	if what != "" {
		numbers = append(numbers, number("share_of_"+what, unit.Estimated(part, "of that of its nodes"), float64(r.cfg.Isolate.MinShare), "ratio"))
	}
	reason := r.say(k, "mao.isolate", wording{
		summary:      fmt.Sprintf("%s is %.0f%% worse than it was at the same load, lacks no CPU, and this is what pollutes most beside it: kept to %s", l.ID, (l.Quality.Ratio-1)*100, classWords(class)),
		numbers:      numbers,
		alternatives: r.otherSteps(n, l.Quality.Step),
	})
	r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: n.ID, Class: &class, Reason: reason})
}

// otherSteps are those that come before and after.
func (r *round) otherSteps(n *load, step int) (list []action.Alternative) {
	for i, c := range r.cfg.Isolate.Steps {
		list = append(list, action.Alternative{Nodes: r.usesNodes(n), Detail: classWords(c), Chosen: i+1 == step})
	}
	return list
}

func classWords(c action.Class) string {
	var parts []string
	if c.Cache > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of the caches", float64(c.Cache)*100))
	}
	if c.Bandwidth > 0 {
		parts = append(parts, fmt.Sprintf("%.0f%% of the memory bandwidth", float64(c.Bandwidth)*100))
	}
	return strings.Join(parts, " and ")
}

// usesNodes are the nodes on which it uses CPU.
func (r *round) usesNodes(l *load) (nodes set.NodeSet) {
	for j := range r.nodes {
		if l.cpuOn(j, r.nodes[j].id, l.Nodes) >= r.cfg.MinCPU {
			nodes = nodes.With(r.nodes[j].id)
		}
	}
	return nodes
}

// polluter is number 2: −1 if there is none, or nobody can tell.
func (r *round) polluter(l *load) (best int, most float64, what string) {
	llc, traffic := r.wholes(l.Nodes)
	best = -1
	for k := range r.loads {
		n := &r.loads[k]
		if n.Workload == l.Workload || r.spared(n) || slices.Contains(l.Quality.Tried, n.ID) {
			continue
		}
		a, b := r.pollution(n, l.Nodes)
		part, of := share(a.Or(0), llc), "caches"
		if by := share(b.Or(0), traffic); by > part {
			part, of = by, "traffic"
		}
		if part >= float64(r.cfg.Isolate.MinShare) && part > most+rounding {
			best, most, what = k, part, of
		}
	}
	return best, most, what
}

// wholes are what shares of these nodes' caches and traffic are of: bytes they hold, and
// bytes their controllers served. 0: nobody can tell.
func (r *round) wholes(nodes set.NodeSet) (llc, traffic float64) {
	toldLLC, toldTraffic := true, true
	for k := range r.loads {
		a, b := r.pollution(&r.loads[k], nodes)
		llc, traffic = llc+a.Or(0), traffic+b.Or(0)
		toldLLC, toldTraffic = toldLLC && a.Known(), toldTraffic && b.Known()
	}
	if size := r.cachesOf(nodes); size > 0 {
		llc, toldLLC = size, true
	}
	served, told := 0.0, true
	for i := range r.w.Nodes {
		if n := &r.w.Nodes[i]; nodes.Has(n.ID) {
			served += float64(n.Traffic.Or(0))
			told = told && n.Traffic.Known()
		}
	}
	if told && served > 0 {
		traffic, toldTraffic = served, true
	}
	if !toldLLC {
		llc = 0
	}
	if !toldTraffic {
		traffic = 0
	}
	return llc, traffic
}

// cachesOf is the size of these nodes' last-level caches, bytes; 0: the machine does not
// tell. One that several nodes share counts for each that it is of.
func (r *round) cachesOf(nodes set.NodeSet) (size float64) {
	for _, c := range r.m.LLCs {
		for i := range r.nodes {
			if nodes.Has(r.nodes[i].id) && !c.CPUs.Intersect(r.nodes[i].cpus).IsEmpty() {
				size += float64(c.Size.Or(0))
				break
			}
		}
	}
	return size
}

// pollution is what it holds of the caches and moves to and from memory, by how much of
// its CPU use is on these nodes; unknown what is not known. Who does not run there does
// not pollute.
func (r *round) pollution(l *load, nodes set.NodeSet) (llc, traffic unit.Opt[float64]) {
	here, all := 0.0, 0.0
	for j := range r.nodes {
		cpu := l.cpuOn(j, r.nodes[j].id, l.Nodes)
		if all += cpu; nodes.Has(r.nodes[j].id) {
			here += cpu
		}
	}
	if here < r.cfg.MinCPU {
		return unit.Some(0.0), unit.Some(0.0)
	}
	part := share(here, all)
	return unit.OptOf(part*float64(l.LLC.Or(0)), l.LLC.Known()), unit.OptOf(part*float64(l.Traffic.Or(0)), l.Traffic.Known())
}

// spared says that a workload is never, or not now, isolated.
func (r *round) spared(n *load) bool {
	never := r.cfg.Isolate.Never
	return n.Approved || n.bound() || n.Class != nil && !n.Class.None() || slices.Contains(never, n.ID) ||
		n.Service != "" && slices.Contains(never, n.Service) || r.isolated(n.ID)
}

// isolated says that a workload is isolated for some other, as far as the state knows.
func (r *round) isolated(id string) bool {
	return slices.ContainsFunc(r.memories, func(m Memory) bool { return m.Quality.neighbour() == id })
}

// watch is numbers 3 and 4 of what workload i has a neighbour isolated for.
func (r *round) watch(i int, judged bool) {
	l := &r.loads[i]
	q := l.Quality
	k, here := r.w.WorkloadIndex(q.Neighbour)
	switch {
	case !l.bound():
		r.over(l, q.free(), "what it was isolated for is not bound any more")
	case q.Step > len(r.cfg.Isolate.Steps):
		r.over(l, q.free(), "the configuration has no such step any more")
	case !here && r.remembers(q.Neighbour): // a failed reading is no farewell
	case !here:
		l.Quality = q.free()
	case r.loads[k].Approved || r.loads[k].bound():
		r.over(l, q.free(), "its service is approved for binding now")
	case r.w.Seq-q.Since >= r.cfg.Isolate.Hold:
		r.over(l, q.free(), fmt.Sprintf("after %d windows it is given back, to see whether it is still needed", r.w.Seq-q.Since))
	case q.Held || !judged || r.w.Seq-q.Since < uint64(r.cfg.Isolate.Watch):
	default:
		r.judgeStep(i, k)
	}
}

// judgeStep is number 3, once a step was watched for long enough.
func (r *round) judgeStep(i, k int) {
	l := &r.loads[i]
	q := *l.Quality
	won := 1.0 // it is not worse any more
	if q.Worse > 0 {
		won = (q.Before - q.Ratio) / max(q.Before-1, rounding)
	}
	switch {
	case q.Worse == 0 && q.Well < r.cfg.Isolate.After: // one good window is no proof, a load never seen none at all
	case won < float64(r.cfg.Isolate.Gain):
		tried := q.free()
		tried.Tried = append(slices.Clone(q.Tried), q.Neighbour)
		tried.Tried = tried.Tried[max(0, len(tried.Tried)-mostTried):]
		r.over(l, tried, fmt.Sprintf("it did not help: %s is %.0f%% worse than it was, %.0f%% before", l.ID, (q.Ratio-1)*100, (q.Before-1)*100))
	case q.Worse == 0 || q.Step == len(r.cfg.Isolate.Steps):
		q.Held, q.Since = true, r.w.Seq
		l.Quality = &q
	default:
		q.Step, q.Since, q.Before = q.Step+1, r.w.Seq, q.Ratio
		l.Quality = &q
		r.setClass(i, k, 0, "") // the evidence is that of the first step
	}
}

// free is the quality without a neighbour isolated.
func (q *Quality) free() *Quality {
	next := *q
	next.Neighbour, next.Step, next.Since, next.Before, next.Held = "", 0, 0, 0, false
	return &next
}

// remembers says that a workload was here a few windows ago.
func (r *round) remembers(id string) bool {
	return slices.ContainsFunc(r.absent, func(m Memory) bool { return m.Workload == id && m.Absent <= r.cfg.ForgetAfter })
}

// over gives back the neighbour of a workload, which then has this quality.
func (r *round) over(l *load, next *Quality, why string) {
	id := l.Quality.Neighbour
	l.Quality = next
	say := wording{summary: "it may use all of the caches and the memory bandwidth again: " + why}
	reason := say.reason("mao.isolate.over", id)
	if k, here := r.w.WorkloadIndex(id); here {
		say.numbers = r.loads[k].evidence()
		reason = r.say(k, "mao.isolate.over", say)
	}
	r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: id, Class: &action.Class{}, Reason: reason})
}

// say is decide for what is done to a neighbour: its reason goes with the action, and is
// that of the workload's window only where nothing else was decided for it.
func (r *round) say(k int, rule string, what wording) action.Reason {
	reason := what.reason(rule, r.loads[k].ID)
	if !r.decided(k) {
		r.rules[k], r.reasons[k] = rule, reason
	}
	return reason
}

// classOutcome: what was refused, failed, or was changed by somebody else is not tried
// again. It is not asked for any more, so actuate gives back what may be left of it.
func (r *round) classOutcome(o *action.Outcome) {
	if o.Status != action.Refused && o.Status != action.Failed && o.Status != action.Drifted {
		return
	}
	if o.Step.Class != nil && o.Step.Class.None() {
		return // of giving back: actuate goes on with that
	}
	for _, list := range [...][]Memory{r.memories, r.absent} {
		for i := range list {
			if q := list[i].Quality; q.neighbour() == o.Step.Workload {
				next := q.free()
				next.Tried = append(slices.Clone(q.Tried), o.Step.Workload)
				list[i].Quality = next
			}
		}
	}
}

// escalate is number 5.
func (r *round) escalate(i int) {
	l := &r.loads[i]
	q := l.Quality
	tried := "nobody beside it is known to pollute, or may be isolated"
	if len(q.Tried) > 0 {
		tried = "isolating " + strings.Join(q.Tried, ", ") + " did not help"
	}
	next := *q
	next.Quiet, next.Tried = r.w.Seq+r.cfg.Isolate.Cooldown, nil
	next.Worse, next.Ratio = 0, 0 // and how it does now is what it is held against: see unlearn
	next.Past = q.unlearn(loadOf(l.CPU.Or(0)))
	reason := r.decide(i, "mao.escalate", wording{
		summary: fmt.Sprintf("bound to nodes %v and at home, it is %.0f%% worse than it was at the same load for %d windows, without lack of CPU; %s; this host cannot help it",
			l.Nodes, (q.Ratio-1)*100, q.Worse, tried),
		numbers: r.contention(l), alternatives: r.elsewhere(i),
	})
	r.actions = append(r.actions, action.Action{Kind: action.Escalate, Workload: l.ID, Reason: reason})
	l.Quality = &next
}

// elsewhere are the other node sets of this host, as they would be judged for a workload
// that is bound.
func (r *round) elsewhere(i int) []action.Alternative {
	l := &r.loads[i]
	if l.pages == nil {
		return nil
	}
	nodes := l.Nodes
	l.Nodes, r.book = set.NodeSet{}, nil
	s := r.newSearch(l)
	s.judgeAll(1)
	l.Nodes, r.book = nodes, nil
	list := s.alternatives(offer{})
	for k := range list {
		list[k].Chosen = list[k].Nodes == nodes
	}
	slices.SortStableFunc(list, func(a, b action.Alternative) int { return cmp.Compare(b2i(b.Chosen), b2i(a.Chosen)) })
	return list
}

// contention is the evidence of number 1.
func (r *round) contention(l *load) []action.Number {
	q := l.Quality
	name, v := q.Metric, metricNamed(l, q.Metric)
	n := figure(name, v, metricUnits[name])
	if at, ok := q.like(loadOf(l.CPU.Or(0))); ok {
		n = number(name, v, q.Past[at].Mean*(1+float64(r.cfg.Isolate.Rise)), metricUnits[name])
	}
	numbers := []action.Number{
		n, figure("times_its_past", derived(q.Ratio, q.Worse > 0, "mean of windows of the same load"), "ratio"),
		l.localNumber(), number("cpu_waiting", unit.ValueOf(float64(l.Waiting.Or(0)), l.Waiting.How, l.Waiting.From), float64(r.cfg.Isolate.Pressure), "ratio"),
	}
	if t, ok := l.Throttled.Get(); ok {
		numbers = append(numbers, number("throttled", unit.ValueOf(float64(t), l.Throttled.How, l.Throttled.From), float64(r.cfg.Isolate.Pressure), "ratio"))
	}
	return numbers
}

var metricUnits = map[string]string{"latency": "s", "uncore_penalty": "cycles", "memory_stall_ratio": "ratio", "misses_per_instruction": "1/instruction"}
