// SPDX-License-Identifier: Apache-2.0

package numad

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one window. It returns the next state, the actions, and exactly one reason for
// each of the window's workloads, in their order. The numbers are those of the package
// comment.
func Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []action.Reason) {
	s := newScan(m, cfg, st, w)
	s.outcomes()
	s.goOn()
	if w.At.Before(st.Next) { // 1
		reasons := s.explain("numad.wait")
		return s.next, s.actions, reasons
	}
	s.next.Next = w.At.Add(cfg.MaxInterval)
	for _, i := range s.candidates() { // 3
		if s.place(i) {
			s.next.Next = w.At.Add(cfg.MinInterval)
			break
		}
	}
	reasons := s.explain("numad.keep")
	return s.next, s.actions, reasons
}

// scan holds the data of one Step. Slices by node are parallel to nodes.
type scan struct {
	cfg     Config
	w       window.Window
	nodes   []node
	all     set.NodeSet
	next    State
	actions []action.Action
	reasons []*action.Reason // nil: not decided yet
	needs   []need           // parallel to the window's workloads
}

// node is a node, and what it has left.
type node struct {
	id             int
	at             int // in Window.Nodes
	cpus, free     float64
	memory, mbFree float64 // bytes
	distance       []float64
}

// need is what a workload uses.
type need struct {
	cpus, bytes float64
	threads     float64
	by          []float64 // bytes by node
}

func newScan(m machine.Machine, cfg Config, st State, w window.Window) *scan {
	s := &scan{cfg: cfg, w: w, reasons: make([]*action.Reason, len(w.Workloads)), next: State{Next: st.Next}}
	for i, n := range w.Nodes { // 2
		if memory := float64(n.Memory.Or(0)); memory > 0 && n.CPUs.Len() > 0 {
			s.nodes = append(s.nodes, s.node(m, i, n, memory))
		}
	}
	for i := range s.nodes {
		s.all = s.all.With(s.nodes[i].id)
		for _, to := range s.nodes {
			d, ok := m.Distance(s.nodes[i].id, to.id).Get()
			if !ok || d <= 0 {
				d = unknownDistance
			}
			s.nodes[i].distance = append(s.nodes[i].distance, float64(d))
		}
	}
	for _, wl := range w.Workloads {
		s.needs = append(s.needs, s.needOf(wl))
		s.next.Workloads = append(s.next.Workloads, st.of(wl.ID))
	}
	return s
}

// unknownDistance is between two nodes where the firmware says nothing: REMOTE_DISTANCE
// of include/linux/topology.h.
const unknownDistance = 20

// node is number 2: idle time is spread over the worth of its CPUs.
func (s *scan) node(m machine.Machine, at int, n window.Node, memory float64) node {
	online := float64(n.CPUs.Len())
	worth := s.worth(m, n.CPUs)
	busy := min(n.CPUBusy.Or(0), online)
	free := float64(n.Free.Or(0)) + float64(float64(s.cfg.Inactive)*float64(n.File.Or(0)))
	return node{id: n.ID, at: at, cpus: worth, free: worth * (1 - busy/online), memory: memory, mbFree: min(free, memory)}
}

// worth counts the first CPU of a core as one, and each other as SMTShare.
func (s *scan) worth(m machine.Machine, cpus set.CPUSet) float64 {
	cores := 0
	var seen set.CPUSet
	for _, core := range m.Cores {
		if both := core.Intersect(cpus); !both.IsEmpty() {
			cores, seen = cores+1, seen.Union(both)
		}
	}
	cores += cpus.Minus(seen).Len() // unknown: a core of its own
	return float64(cores) + float64(float64(s.cfg.SMTShare)*float64(cpus.Len()-cores))
}

func (s *scan) needOf(wl window.Workload) need {
	n := need{cpus: wl.CPU.Or(0), threads: float64(wl.Tasks.Or(0)), by: make([]float64, len(s.nodes))}
	for i, node := range s.nodes {
		if node.at < len(wl.AnonByNode) {
			n.by[i] = float64(wl.AnonByNode[node.at].Or(0))
			n.bytes += n.by[i]
		}
	}
	return n
}

// outcomes forgets each binding that was refused, or that another process changed.
func (s *scan) outcomes() {
	for _, o := range s.w.Outcomes {
		i, ok := s.next.find(o.Step.Workload)
		if !ok {
			continue
		}
		m := &s.next.Workloads[i]
		switch {
		case o.Status == action.Drifted && !m.Nodes.IsEmpty():
			m.Nodes, m.Pending = set.NodeSet{}, false
			if b := s.w.Workloads[i].Binding; b.OursCPUs || b.OursMems {
				s.unbind(i, s.decide(i, "numad.drifted"))
			}
		case o.Status == action.Refused && o.Step.Kind == action.SetCPUs, o.Status == action.Gone:
			m.Nodes, m.Pending = set.NodeSet{}, false
		}
	}
}

// goOn binds the workloads that were unbound so that they can go to other nodes.
func (s *scan) goOn() {
	for i, wl := range s.w.Workloads {
		m := &s.next.Workloads[i]
		if m.Pending && !wl.Binding.OursCPUs && !wl.Binding.OursMems {
			m.Pending = false
			s.bind(i, s.decide(i, "numad.bind.again"))
		}
	}
}

// candidates is number 3: workloads never placed come first, by CPU × memory, then the
// rest. Among the rest, figures that differ by less than a fifth are ordered by age. That
// order is not transitive, so it cannot be sorted; as numad does, the best is picked again
// and again.
func (s *scan) candidates() []int {
	var rest []int
	for i, wl := range s.w.Workloads {
		switch n := s.needs[i]; {
		case wl.Binding.PinnedCPUs || wl.Binding.PinnedMems:
			s.decide(i, "numad.skip.pinned").Detail = wl.Binding.PinnedWhy
		case n.cpus <= s.cfg.MinCPU || n.bytes <= float64(s.cfg.MinMemory):
			s.decide(i, "numad.skip.small")
		default:
			rest = append(rest, i)
		}
	}
	var order []int
	for len(rest) > 0 {
		best := 0
		for k := range rest {
			if s.sooner(rest[k], rest[best]) {
				best = k
			}
		}
		order = append(order, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return order
}

func (s *scan) sooner(a, b int) bool {
	ma, mb := s.next.Workloads[a], s.next.Workloads[b]
	if ma.Seen.IsZero() != mb.Seen.IsZero() {
		return ma.Seen.IsZero()
	}
	sizeA, sizeB := float64(s.needs[a].cpus*s.needs[a].bytes), float64(s.needs[b].cpus*s.needs[b].bytes)
	alike := math.Abs(sizeA-sizeB)*5 <= min(sizeA, sizeB)
	if !ma.Seen.IsZero() && alike {
		return ma.Seen.Before(mb.Seen)
	}
	return sizeA > sizeB
}

// place is numbers 4 to 6 for one candidate. It reports whether a move was begun.
func (s *scan) place(i int) bool {
	m, n := &s.next.Workloads[i], s.needs[i]
	cpus := n.cpus / float64(s.cfg.Utilisation)
	if n.threads > 0 {
		cpus = min(cpus, n.threads)
	}
	bytes := n.bytes / min(1, float64(s.cfg.Utilisation))
	if !m.Seen.IsZero() && s.w.At.Before(m.Seen.Add(s.cfg.Again)) && !s.better(i, cpus, bytes) { // 4
		ago := action.Counted("seconds_since", s.w.At.Sub(m.Seen).Seconds(), "s")
		ago.Limit = unit.Some(s.cfg.Again.Seconds())
		why := s.decide(i, "numad.skip.recent")
		why.Numbers = append(why.Numbers, ago)
		return false
	}
	target := s.pick(i, cpus, bytes) // 5
	m.Seen = s.w.At
	switch { // 6
	case target.IsEmpty():
		return false
	case target == s.all && m.Nodes.IsEmpty():
		s.decide(i, "numad.keep.all")
		return false
	case target == m.Nodes && s.away(n, target) <= float64(1-s.cfg.Locality)*n.bytes:
		s.decide(i, "numad.keep.home")
		return false
	case target == m.Nodes: // its memory is being moved, or cannot be
		s.decide(i, "numad.keep.follows")
		return false
	}
	s.move(i, target)
	return true
}

// move begins a binding. A workload bound to other nodes is unbound first.
func (s *scan) move(i int, target set.NodeSet) {
	m := &s.next.Workloads[i]
	was := m.Nodes
	m.Nodes = target
	if target == s.all {
		m.Nodes = set.NodeSet{}
	}
	why := s.decide(i, "numad.bind")
	why.Nodes = target
	if was.IsEmpty() {
		s.bind(i, why)
		return
	}
	m.Pending = !m.Nodes.IsEmpty()
	s.unbind(i, why)
}

func (s *scan) bind(i int, why *action.Reason) {
	id := s.w.Workloads[i].ID
	s.actions = append(s.actions, action.Action{Kind: action.Bind, Workload: id, Nodes: s.next.Workloads[i].Nodes, Reason: *why})
}

func (s *scan) unbind(i int, why *action.Reason) {
	s.actions = append(s.actions, action.Action{Kind: action.Unbind, Workload: s.w.Workloads[i].ID, Reason: *why})
}

// away is how much of its memory is outside these nodes.
func (s *scan) away(n need, nodes set.NodeSet) float64 {
	sum := 0.0
	for k, node := range s.nodes {
		if !nodes.Has(node.id) {
			sum += n.by[k]
		}
	}
	return sum
}

// decide makes a reason for workload i. It becomes the workload's reason unless it has one.
func (s *scan) decide(i int, rule string) *action.Reason {
	why := &action.Reason{Rule: rule, Workload: s.w.Workloads[i].ID, Numbers: []action.Number{
		{Name: "cpu", Value: s.w.Workloads[i].CPU, Limit: unit.Some(s.cfg.MinCPU), Unit: "cpus"},
		{Name: "anon", Value: unit.Estimated(s.needs[i].bytes, "sum by node"), Limit: unit.Some(float64(s.cfg.MinMemory)), Unit: "bytes"},
	}}
	if s.reasons[i] == nil {
		s.reasons[i] = why
	}
	return why
}

// explain gives this reason to all workloads without one, and returns all reasons.
func (s *scan) explain(rule string) []action.Reason {
	all := make([]action.Reason, len(s.reasons))
	for i := range s.reasons {
		s.decide(i, rule)
		all[i] = *s.reasons[i]
	}
	slices.SortStableFunc(s.actions, func(a, b action.Action) int { return cmp.Compare(a.Workload, b.Workload) })
	return all
}
