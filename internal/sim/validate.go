// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Limits of a spec: a larger value is a typing error, not a machine's load.
const (
	maxThreads  = 1 << 16
	maxReplicas = 1 << 12
	maxAmount   = 1e18
	day         = 24 * time.Hour
)

// Problem is an invalid part of a spec.
type Problem struct {
	// Field is its path, as a scenario spells it: "demand.rate", "work.regions[1].writes".
	Field string
	Text  string // the value, and what is wanted: "-3: want 0 or more"
}

// String is "demand.rate -3: want 0 or more".
func (p Problem) String() string { return p.Field + " " + p.Text }

// Validate lists what is invalid in a spec on this machine, in the order of its fields.
func (s Spec) Validate(m machine.Machine) []Problem {
	v := &validator{}
	v.identity(s)
	v.memory(s, m)
	v.work(s)
	v.demand(s.Demand)
	v.start(s.Start, m)
	v.times(s)
	return v.problems
}

type validator struct{ problems []Problem }

func (v *validator) addError(field string, value any, want string) {
	v.problems = append(v.problems, Problem{field, fmt.Sprintf("%v: want %s", value, want)})
}

// check reports the value as a problem unless ok.
func (v *validator) check(ok bool, field string, value any, want string) {
	if !ok {
		v.addError(field, value, want)
	}
}

// amount must be finite and not negative.
func (v *validator) amount(field string, x float64) {
	v.check(x >= 0 && x <= maxAmount, field, x, "0 or more")
}

func (v *validator) share(field string, x float64) {
	v.check(x >= 0 && x <= 1, field, x, "a share, 0 to 1")
}

func (v *validator) bytes(field string, b unit.Bytes) {
	v.check(b >= 0, field, int64(b), "0 or more bytes")
}

func (v *validator) identity(s Spec) {
	v.check(nameable(s.Name), "name", fmt.Sprintf("%q", s.Name), "letters, digits and -_.@:, at most 200 of them")
	v.check(s.Service == "" || nameable(s.Service), "service", fmt.Sprintf("%q", s.Service), "letters, digits and -_.@:, or nothing")
	v.check(s.Owner == "" || nameable(s.Owner), "owner", fmt.Sprintf("%q", s.Owner), "letters, digits and -_.@:, or nothing")
	v.check(s.Replicas >= 0 && s.Replicas <= maxReplicas, "replicas", s.Replicas, fmt.Sprintf("0 (one) to %d", maxReplicas))
	v.check(s.Threads >= 1 && s.Threads <= maxThreads, "threads", s.Threads, fmt.Sprintf("1 to %d", maxThreads))
	v.amount("cpu_limit", s.CPULimit)
	v.amount("cpu_request", s.CPURequest)
	v.share("target_local_ratio", float64(s.Target))
}

// nameable reports whether a name can be part of a cgroup's path and is safe to print.
func nameable(name string) bool {
	ok := name != "" && len(name) <= 200 && name != "." && name != ".."
	for _, c := range name {
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.@:", c))
	}
	return ok
}

func (v *validator) memory(s Spec, m machine.Machine) {
	mem := s.Memory
	v.bytes("memory.private", mem.Private)
	v.bytes("memory.shared", mem.Shared)
	v.bytes("memory.files", mem.Files)
	v.bytes("memory.cache", mem.Cache)
	if p := mem.PrivateAccesses; p != nil {
		v.check(*p == -1 || *p >= 0 && *p <= 1, "memory.private_accesses", *p, "a share, 0 to 1, or -1: what its regions read")
	}
	v.bytes("memory.growth_per_hour", mem.Growth)
	v.bytes("memory.cache_growth_per_hour", mem.CacheGrowth)
	v.amount("memory.churn_per_hour", mem.Churn)
	v.check(mem.Toucher == "" || mem.Toucher == "main" || mem.Toucher == "workers", "memory.toucher", fmt.Sprintf("%q", mem.Toucher), `"main" or "workers"`)
	if have := memoryOf(m, set.NodeSet{}); have == 0 {
		v.addError("memory", "the machine has none", "a machine with memory")
	} else if need := s.Held() * float64(s.replicas()); need > have {
		v.addError("memory", fmt.Sprintf("%v in all", unit.Bytes(min(need, math.MaxInt64/2))), fmt.Sprintf("no more than the machine has, %v", unit.Bytes(have)))
	} else if bind := s.Start.Bind; !bind.IsEmpty() && need > memoryOf(m, bind) {
		v.addError("start.bind", bind, fmt.Sprintf("nodes with %v: they have %v", unit.Bytes(need), unit.Bytes(memoryOf(m, bind))))
	}
}

// memoryOf is the memory that these nodes have for workloads; with no nodes: all nodes.
func memoryOf(m machine.Machine, nodes set.NodeSet) (sum float64) {
	for _, n := range m.Nodes {
		if nodes.IsEmpty() || nodes.Has(n.ID) {
			sum += float64(n.Memory.Or(0)) * (1 - kernelShare)
		}
	}
	return sum
}

func (v *validator) work(s Spec) {
	w := s.Work
	v.check(w.Cycles > 0 && w.Cycles <= maxAmount, "work.cycles", w.Cycles, "more than 0")
	v.amount("work.instructions", w.Instructions)
	v.amount("work.adds", w.Adds)
	v.check(w.Adds == 0 || w.Lines >= 1 && w.Lines <= maxAmount, "work.lines", w.Lines, "1 or more, as there are adds")
	v.check(w.Barrier >= 0, "work.barrier", w.Barrier, "0 (none) or more operations")
	v.check(w.Barrier <= 0 || !(s.Demand.Rate > 0) && s.Demand.Think == 0, "work.barrier", w.Barrier, "0 where there is a rate or a think: requests do not wait for each other")
	v.check(!w.Spin || w.Barrier > 0, "work.spin", w.Spin, "work.barrier, to wait at")
	private, shared := 0.0, 0.0
	for i, r := range w.Regions {
		v.region(fmt.Sprintf("work.regions[%d].", i), r)
		if r.Shared {
			shared += float64(r.Size)
		} else {
			private += float64(r.Size) * float64(s.Threads)
		}
	}
	v.fits("memory.private", s.Memory.Private, private, "the regions of its threads take")
	v.fits("memory.shared", s.Memory.Shared+s.Memory.Files, shared, "its shared regions take")
}

func (v *validator) fits(field string, have unit.Bytes, need float64, what string) {
	if need > float64(have) && have >= 0 {
		v.addError(field, have, fmt.Sprintf("%v or more: %s that", unit.Bytes(min(need, math.MaxInt64/2)), what))
	}
}

func (v *validator) region(at string, r RegionSpec) {
	v.check(r.Size > 0, at+"size", int64(r.Size), "more than 0 bytes")
	v.amount(at+"accesses", r.Accesses)
	v.check(r.Parallelism == 0 || r.Parallelism >= 1 && r.Parallelism <= 1024, at+"parallelism", r.Parallelism, "1 to 1024, or 0: 1")
	v.share(at+"writes", r.Writes)
}

func (v *validator) demand(d DemandSpec) {
	v.amount("demand.rate", d.Rate)
	v.check(d.Think >= 0 && d.Think <= day, "demand.think", d.Think, "0 to 24h")
	v.check(d.Rate <= 0 || d.Think == 0, "demand.think", d.Think, "0 where there is a rate: requests come by themselves")
	v.share("demand.low", d.Low)
	v.check(d.Peak >= 0 && d.Peak <= day, "demand.peak", d.Peak, "an hour of the day, 0h to 24h")
	v.check(d.Noise >= 0 && d.Noise <= 3, "demand.noise", d.Noise, "a relative deviation, 0 to 3")
	v.amount("demand.spread", d.Spread)
	v.check(d.Queue >= 0, "demand.queue", d.Queue, "0 (64 a thread) or more")
	v.check(d.Wakes == -1 || d.Wakes >= 0 && d.Wakes <= maxAmount, "demand.wakes", d.Wakes, "0 or more, or -1: 1 with a rate")
	v.amount("demand.bursts", d.Bursts)
}

func (v *validator) start(s StartSpec, m machine.Machine) {
	online, mems := onlineCPUs(m), m.NodesWithMemory()
	if missing := s.CPUs.Minus(online); !missing.IsEmpty() {
		v.addError("start.cpus", s.CPUs, fmt.Sprintf("CPUs of %v: the machine has no CPU %v online", online, missing))
	}
	v.check(!s.Pinned || !s.CPUs.IsEmpty(), "start.pinned", s.Pinned, "start.cpus, to tie its threads to")
	for _, f := range []struct {
		name  string
		nodes set.NodeSet
	}{{"start.bind", s.Bind}, {"start.interleave", s.Interleave}, {"start.touch", s.Touch}} {
		if missing := f.nodes.Minus(mems); !missing.IsEmpty() {
			v.addError(f.name, f.nodes, fmt.Sprintf("nodes of %v: the machine has no memory on node %v", mems, missing))
		}
	}
	v.check(s.Bind.IsEmpty() || s.Interleave.IsEmpty(), "start.interleave", s.Interleave, "nothing where there is start.bind")
}

// onlineCPUs are the CPUs of the nodes; a CPU of unknown node does not count.
func onlineCPUs(m machine.Machine) set.CPUSet { return m.CPUsOf(m.NodeIDs()) }

func (v *validator) times(s Spec) {
	v.check(s.Arrive >= 0, "arrive", s.Arrive, "0 or more")
	v.check(s.Depart == 0 || s.Depart > s.Arrive, "depart", s.Depart, "0 (never), or later than arrive")
	for i, p := range s.Phases {
		at := fmt.Sprintf("phases[%d].", i)
		v.check(p.Lasts > 0, at+"lasts", p.Lasts, "more than 0")
		v.amount(at+"rate", p.Rate)
		v.amount(at+"accesses", p.Accesses)
		v.amount(at+"cycles", p.Cycles)
	}
}

// SpecProblem is a Problem of one of several specs.
type SpecProblem struct {
	Spec int // index
	Name string
	Problem
}

func (p SpecProblem) Error() string { return fmt.Sprintf("workload %q: %s", p.Name, p.Problem) }

// ValidateAll is Validate for each spec, and for all together: two specs with one name, or
// more memory at one time than there is on the nodes that it is bound to.
func ValidateAll(specs []Spec, m machine.Machine) []SpecProblem {
	var all []SpecProblem
	add := func(i int, p Problem) { all = append(all, SpecProblem{i, specs[i].Name, p}) }
	taken := map[string]int{}
	for i, s := range specs {
		for _, p := range s.Validate(m) {
			add(i, p)
		}
		for r := range min(s.replicas(), maxReplicas) {
			id := s.id(r)
			if first, twice := taken[id]; twice && len(all) == 0 {
				add(i, Problem{"name", fmt.Sprintf("%q: want another one: workload %q has the ID %s, too", s.Name, specs[first].Name, id)})
			}
			taken[id] = i
		}
	}
	if len(all) > 0 {
		return all
	}
	if i, p, over := crowded(specs, m, set.NodeSet{}); over {
		add(i, p)
	}
	for _, nodes := range bindings(specs) {
		if i, p, over := crowded(specs, m, nodes); over && len(all) == 0 {
			add(i, p)
		}
	}
	return all
}

// mostBindings bounds the sets of nodes that bindings examines, as overlapping sets may be
// many.
const mostBindings = 256

// bindings are the sets of nodes that memory is bound to, and the unions of overlapping
// sets: what is bound within a union must fit there.
func bindings(specs []Spec) (all []set.NodeSet) {
	add := func(nodes set.NodeSet) {
		if !nodes.IsEmpty() && !slices.Contains(all, nodes) && len(all) < mostBindings {
			all = append(all, nodes)
		}
	}
	for _, s := range specs {
		add(s.Start.Bind)
	}
	for i := 0; i < len(all); i++ {
		for _, o := range all[:i] {
			if o.Overlaps(all[i]) {
				add(o.Union(all[i]))
			}
		}
	}
	return all
}

// crowded finds the first spec at whose arrival there is too little memory for all specs
// bound within these nodes; with no nodes, for all specs. First touch falls over to other
// nodes from anywhere, and bounds nothing.
func crowded(specs []Spec, m machine.Machine, nodes set.NodeSet) (int, Problem, bool) {
	have := memoryOf(m, nodes)
	within := func(s Spec) bool {
		return nodes.IsEmpty() || !s.Start.Bind.IsEmpty() && s.Start.Bind.SubsetOf(nodes)
	}
	for i, s := range specs {
		sum := 0.0
		for _, o := range specs {
			if within(o) && o.Arrive <= s.Arrive && (o.Depart == 0 || o.Depart > s.Arrive) {
				sum += o.Held() * float64(o.replicas())
			}
		}
		switch {
		case !within(s) || sum <= have:
		case nodes.IsEmpty():
			text := fmt.Sprintf("%v with the other workloads of that time: want no more than the machine has, %v", unit.Bytes(sum), unit.Bytes(have))
			return i, Problem{"memory", text}, true
		default:
			text := fmt.Sprintf("%v: want nodes with %v for all workloads bound to nodes %v at that time: they have %v", s.Start.Bind, unit.Bytes(sum), nodes, unit.Bytes(have))
			return i, Problem{"start.bind", text}, true
		}
	}
	return 0, Problem{}, false
}

// validate is the check of NewWorld.
func (c Config) validate() error {
	n := len(c.Machine.Nodes)
	switch {
	case n == 0 || len(c.System.Nodes) != n:
		return fmt.Errorf("make world: the machine has %d nodes, the memory system %d: want the same, 1 or more", n, len(c.System.Nodes))
	case onlineCPUs(c.Machine).IsEmpty():
		return errors.New("make world: the machine has no CPU online: want 1 or more")
	case c.Machine.NodesWithMemory().IsEmpty():
		return errors.New("make world: no node of the machine has memory: want 1 or more")
	case !(c.System.Hz > 0):
		return fmt.Errorf("make world: %v core cycles a second: want more than 0", c.System.Hz)
	case c.Step < 0:
		return fmt.Errorf("make world: step %v: want more than 0 (0: %v)", c.Step, defaultStep)
	}
	for i, node := range c.Machine.Nodes {
		if c.System.Nodes[i].ID != node.ID {
			return fmt.Errorf("make world: node %d of the memory system is %d, of the machine %d: want the same", i, c.System.Nodes[i].ID, node.ID)
		}
	}
	var errs []error
	for _, p := range ValidateAll(c.Specs, c.Machine) {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
