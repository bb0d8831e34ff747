// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"errors"
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
//  1. Contention: a bound workload is at home (on target, or its pages are there), does
//     not lack CPU, and does worse than its own past at the same load by Rise, for After
//     windows in a row. "Worse" is judged by its latency, else the uncore penalty, else the
//     stall ratio, else misses per instruction: the first that is known (quality.go). A
//     workload that is not at home yet is left to actuate, which moves the hot pages first.
//  2. The worst polluter: of the neighbours that use CPU on its nodes, are not approved,
//     not spared (Never) and not isolated, the one with the largest share of the last-level
//     caches there, or of the memory traffic; at least MinShare. A share is relative to what
//     the caches hold and the controllers served. Where that is unknown, it is relative to
//     the sum over all workloads that run there, if it is known for each (RMIDs are few).
//     Unknown is no evidence: then no neighbour is isolated.
//  3. It is limited to the first of Steps. After Watch windows that must have won back
//     Gain of what was lost. If the workload is still worse, the next step follows; once it
//     is not, the step stays. If a step did not help it is given back, and the next neighbour
//     is tried.
//  4. A step that stays is given back after Hold windows, to test whether it is still
//     needed. It is also given back when the workload is unbound, when the neighbour is
//     approved, and when either is gone for longer than a failed reading lasts.
//  5. When no neighbour is left to try, it is escalated with the evidence. For Cooldown
//     windows nothing more is tried, and its performance then becomes the new reference.
//
// There is one new isolation per window, over all workloads, so each is judged by its own
// effect.
//
// An isolation is a lease: it is requested anew in each window in which the state has it
// (Renew), and actuate gives back what is not requested. So the state alone says what is
// isolated, and nothing that is forgotten here stays behind there. A workload has one
// reason per window, whatever is done to it; what else happens to a neighbour does not keep
// it isolated.

// Isolate has the limits for what happens when binding is not enough. All figures are our
// choice.
type Isolate struct {
	Enabled  bool           `yaml:"enabled" json:"enabled"`     // whether neighbours may be isolated
	Rise     unit.Ratio     `yaml:"rise" json:"rise"`           // increase over its own past that counts as worse
	Pressure unit.Ratio     `yaml:"pressure" json:"pressure"`   // share of the time in which one of its threads waited for a CPU, or of its quota's periods throttled; above it, it lacks CPU
	After    int            `yaml:"after" json:"after"`         // windows in a row; more: calmer and later
	MinPast  int            `yaml:"min_past" json:"min_past"`   // windows at a load before they count as its past
	MinShare unit.Ratio     `yaml:"min_share" json:"min_share"` // least share of the caches' contents or of the traffic that a neighbour must have
	Steps    []action.Class `yaml:"steps" json:"steps"`         // one after the other, ever tighter
	Watch    int            `yaml:"watch" json:"watch"`         // windows in which a step must help
	Gain     unit.Ratio     `yaml:"gain" json:"gain"`           // share of the loss that it must win back
	Hold     uint64         `yaml:"hold" json:"hold"`           // windows after which a step that helped is given back, to test the need
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
	var errs []error
	for _, s := range []struct {
		name  string
		value unit.Ratio
	}{{"rise", c.Rise}, {"pressure", c.Pressure}, {"min_share", c.MinShare}, {"gain", c.Gain}} {
		if !s.value.Valid() {
			errs = append(errs, fmt.Errorf("mao: isolate.%s is %v: it must be between 0 and 1", s.name, float64(s.value)))
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"after", c.After}, {"min_past", c.MinPast}, {"watch", c.Watch}, {"hold", int(min(c.Hold, 1))}, {"cooldown", int(min(c.Cooldown, 1))}} {
		if n.value < 1 {
			errs = append(errs, fmt.Errorf("mao: isolate.%s is %d: it must be at least 1", n.name, n.value))
		}
	}
	for i, s := range c.Steps {
		if !s.Cache.Valid() || !s.Bandwidth.Valid() || s.None() {
			errs = append(errs, fmt.Errorf("mao: isolate.steps[%d] is cache %v, bandwidth %v: they must be between 0 and 1, and not both 0", i, float64(s.Cache), float64(s.Bandwidth)))
		}
	}
	return errors.Join(errs...)
}

// followUp is numbers 1 to 5.
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

// renew requests the isolations that stay, also for workloads that one reading missed.
func (r *round) renew() {
	for _, list := range [...][]Memory{r.memories, r.absent} {
		for k := range list {
			m := &list[k]
			q := m.Quality
			if q.neighbour() == "" || q.Since == r.w.Seq && !q.Held || q.Step > len(r.cfg.Isolate.Steps) || m.Absent > r.cfg.ForgetAfter {
				continue // requested just now by setClass, or no longer wanted
			}
			class := r.cfg.Isolate.Steps[q.Step-1]
			r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: q.Neighbour, Class: &class, Renew: true,
				Reason: action.Reason{Rule: ruleIsolate, Workload: q.Neighbour}})
		}
	}
}

// freeAll gives back earlier isolations after isolation was switched off.
func (r *round) freeAll() {
	for i := range r.loads {
		if l := &r.loads[i]; l.Quality.neighbour() != "" {
			r.over(l, l.Quality.free(), action.Reason{Rule: "mao.over.off"})
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

// isolate is numbers 2 and 5 for workload i. It reports whether a neighbour is isolated.
func (r *round) isolate(i int) bool {
	l := &r.loads[i]
	if quiet := l.Quality.Quiet; r.w.Seq < quiet {
		r.decide(i, action.Reason{Rule: "mao.keep.contended", Numbers: append(r.contention(l), action.Counted("until", float64(quiet), "window"))})
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
	of := number("share_of_"+what, unit.Estimated(part, "of that of its nodes"), float64(r.cfg.Isolate.MinShare), "ratio")
	r.setClass(i, k, of)
	return true
}

// setClass requests, for neighbour k, the step in workload i's quality.
func (r *round) setClass(i, k int, more ...action.Number) {
	l, n := &r.loads[i], &r.loads[k]
	class := r.cfg.Isolate.Steps[l.Quality.Step-1]
	why := action.Reason{Rule: ruleIsolate, Other: l.ID, Numbers: append(r.contention(l), more...), Alternatives: r.otherSteps(n, l.Quality.Step)}
	for _, part := range classFigures(class) {
		why.Numbers = append(why.Numbers, figure(part.Name, unit.Measured(part.Value, "configuration"), "ratio"))
	}
	r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: n.ID, Class: &class, Reason: r.decideNeighbour(k, why)})
}

const ruleIsolate = "mao.isolate"

// otherSteps are the steps before and after.
func (r *round) otherSteps(n *load, step int) (list []action.Alternative) {
	for i, c := range r.cfg.Isolate.Steps {
		list = append(list, action.Alternative{Nodes: r.usesNodes(n), Figures: classFigures(c), Chosen: i+1 == step})
	}
	return list
}

// classFigures are the limits of a class.
func classFigures(c action.Class) (parts []action.Figure) {
	if c.Cache > 0 {
		parts = append(parts, action.Figure{Name: "cache_allowed", Value: float64(c.Cache)})
	}
	if c.Bandwidth > 0 {
		parts = append(parts, action.Figure{Name: "bandwidth_allowed", Value: float64(c.Bandwidth)})
	}
	return parts
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

// polluter is number 2; −1 if there is none, or if it is unknown.
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

// wholes are the totals for shares on these nodes: the bytes in their caches, and the bytes
// that their controllers served. 0: unknown.
func (r *round) wholes(nodes set.NodeSet) (llc, traffic float64) {
	knownLLC, knownTraffic := true, true
	for k := range r.loads {
		a, b := r.pollution(&r.loads[k], nodes)
		llc, traffic = llc+a.Or(0), traffic+b.Or(0)
		knownLLC, knownTraffic = knownLLC && a.Known(), knownTraffic && b.Known()
	}
	if size := r.cachesOf(nodes); size > 0 {
		llc, knownLLC = size, true
	}
	served, known := 0.0, true
	for i := range r.w.Nodes {
		if n := &r.w.Nodes[i]; nodes.Has(n.ID) {
			served += float64(n.Traffic.Or(0))
			known = known && n.Traffic.Known()
		}
	}
	if known && served > 0 {
		traffic, knownTraffic = served, true
	}
	if !knownLLC {
		llc = 0
	}
	if !knownTraffic {
		traffic = 0
	}
	return llc, traffic
}

// cachesOf is the size of these nodes' last-level caches in bytes; 0: the machine does not
// say. A cache that several nodes share counts for each of them.
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

// pollution is its bytes in the caches and its memory traffic, in proportion to its CPU use
// on these nodes. A figure that is not known is unknown. A workload that does not run there
// does not pollute.
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

// spared reports that a workload is never isolated, or not now.
func (r *round) spared(n *load) bool {
	never := r.cfg.Isolate.Never
	return n.Approved || n.bound() || n.Class != nil && !n.Class.None() || slices.Contains(never, n.ID) ||
		n.Service != "" && slices.Contains(never, n.Service) || r.isolated(n.ID)
}

// isolated reports that a workload is isolated for another one, according to the state.
func (r *round) isolated(id string) bool {
	return slices.ContainsFunc(r.memories, func(m Memory) bool { return m.Quality.neighbour() == id })
}

// watch is numbers 3 and 4, for workload i and the neighbour isolated for it.
func (r *round) watch(i int, judged bool) {
	l := &r.loads[i]
	q := l.Quality
	k, here := r.w.WorkloadIndex(q.Neighbour)
	switch {
	case !l.bound():
		r.over(l, q.free(), action.Reason{Rule: "mao.over.unbound"})
	case q.Step > len(r.cfg.Isolate.Steps):
		r.over(l, q.free(), action.Reason{Rule: "mao.over.no-step"})
	case !here && r.remembers(q.Neighbour): // after one failed reading it is not gone
	case !here:
		l.Quality = q.free()
	case r.loads[k].Approved || r.loads[k].bound():
		r.over(l, q.free(), action.Reason{Rule: "mao.over.approved"})
	case r.w.Seq-q.Since >= r.cfg.Isolate.Hold:
		r.over(l, q.free(), action.Reason{Rule: "mao.over.to-see", Numbers: []action.Number{windows("windows_isolated", r.w.Seq-q.Since)}})
	case q.Held || !judged || r.w.Seq-q.Since < uint64(r.cfg.Isolate.Watch):
	default:
		r.judgeStep(i, k)
	}
}

// judgeStep is number 3, once a step has been watched for long enough.
func (r *round) judgeStep(i, k int) {
	l := &r.loads[i]
	q := *l.Quality
	won := 1.0 // it is no longer worse
	if q.Worse > 0 {
		won = (q.Before - q.Ratio) / max(q.Before-1, rounding)
	}
	switch {
	case q.Worse == 0 && q.Well < r.cfg.Isolate.After: // one good window is no proof, and a load never seen proves nothing
	case won < float64(r.cfg.Isolate.Gain):
		tried := q.free()
		tried.Tried = append(slices.Clone(q.Tried), q.Neighbour)
		tried.Tried = tried.Tried[max(0, len(tried.Tried)-mostTried):]
		now := timesItsPast(q.Ratio, true)
		now.Limit = unit.Some(q.Before)
		r.over(l, tried, action.Reason{Rule: "mao.over.vain", Other: l.ID, Numbers: []action.Number{now}})
	case q.Worse == 0 || q.Step == len(r.cfg.Isolate.Steps):
		q.Held, q.Since = true, r.w.Seq
		l.Quality = &q
	default:
		q.Step, q.Since, q.Before = q.Step+1, r.w.Seq, q.Ratio
		l.Quality = &q
		r.setClass(i, k) // the evidence of the first step still holds
	}
}

// free is the quality without an isolated neighbour.
func (q *Quality) free() *Quality {
	next := *q
	next.Neighbour, next.Step, next.Since, next.Before, next.Held = "", 0, 0, 0, false
	return &next
}

// remembers reports that a workload was here a few windows ago.
func (r *round) remembers(id string) bool {
	return slices.ContainsFunc(r.absent, func(m Memory) bool { return m.Workload == id && m.Absent <= r.cfg.ForgetAfter })
}

// over gives back the neighbour of a workload, and gives the workload this quality.
func (r *round) over(l *load, next *Quality, cause action.Reason) {
	id := l.Quality.Neighbour
	l.Quality = next
	why := action.Reason{Rule: "mao.isolate.over", Workload: id}.Because(cause)
	if k, here := r.w.WorkloadIndex(id); here {
		why.Numbers = r.loads[k].evidence()
		why = r.decideNeighbour(k, why)
	}
	r.actions = append(r.actions, action.Action{Kind: action.Isolate, Workload: id, Class: &action.Class{}, Reason: why})
}

// decideNeighbour is decide for an action on a neighbour. Its reason goes with the action,
// and becomes the workload's reason only where nothing else was decided for it.
func (r *round) decideNeighbour(k int, why action.Reason) action.Reason {
	why.Workload = r.loads[k].ID
	r.decide(k, why)
	return why
}

// classOutcome: an isolation that was refused, that failed or that another process changed
// is not tried again. It is no longer requested, so actuate gives back what may be left of
// it.
func (r *round) classOutcome(o *action.Outcome) {
	if o.Status != action.Refused && o.Status != action.Failed && o.Status != action.Drifted {
		return
	}
	if o.Step.Class != nil && o.Step.Class.None() {
		return // it was giving back: actuate continues with that
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
	why := action.Reason{
		Rule: "mao.escalate", Nodes: l.Nodes, Detail: strings.Join(q.Tried, ", "),
		Numbers: append(r.contention(l), windows("windows_worse", uint64(q.Worse))), Alternatives: r.elsewhere(i),
	}
	next := *q
	next.Quiet, next.Tried = r.w.Seq+r.cfg.Isolate.Cooldown, nil
	next.Worse, next.Ratio = 0, 0 // its present performance is the new reference: see unlearn
	next.Past = q.unlearn(loadOf(l.CPU.Or(0)))
	l.Quality = &next
	r.actions = append(r.actions, action.Action{Kind: action.Escalate, Workload: l.ID, Reason: r.decide(i, why)})
}

// elsewhere lists the other node sets of this host, judged for a workload that is bound.
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
	n := figure(name, v, metricUnit(name))
	if at, ok := q.like(loadOf(l.CPU.Or(0))); ok {
		n = number(name, v, r.cfg.Isolate.limit(name, q.Past[at].Mean), metricUnit(name))
	}
	numbers := []action.Number{
		n, timesItsPast(q.Ratio, q.Worse > 0),
		l.localNumber(), number("cpu_waiting", unit.ValueOf(float64(l.Waiting.Or(0)), l.Waiting.How, l.Waiting.From), float64(r.cfg.Isolate.Pressure), "ratio"),
	}
	if t, ok := l.Throttled.Get(); ok {
		numbers = append(numbers, number("throttled", unit.ValueOf(float64(t), l.Throttled.How, l.Throttled.From), float64(r.cfg.Isolate.Pressure), "ratio"))
	}
	return numbers
}

// timesItsPast is the metric as a multiple of its past.
func timesItsPast(ratio float64, known bool) action.Number {
	return figure("times_its_past", derived(ratio, known, "mean of windows of the same load"), "times")
}

func metricUnit(name string) string {
	switch name {
	case "latency":
		return "s"
	case "uncore_penalty":
		return "cycles"
	case stallRatio:
		return "ratio"
	case "misses_per_instruction":
		return "1/instruction"
	}
	return ""
}
