// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/policy/brm"
	"homenode/internal/policy/mao"
	"homenode/internal/policy/numad"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/window"
)

// Policy decides, window after window. It keeps its own state, so one Policy is for one
// world.
type Policy interface {
	Name() string
	Step(m machine.Machine, w window.Window) []action.Action
}

// Approving is a policy that sees of each workload whether Approve does. The window that others have
// stays as it is.
type Approving struct {
	Policy
	Approve func(wl *window.Workload) bool
}

// Step shows its policy a copy of the window.
func (a Approving) Step(m machine.Machine, w window.Window) []action.Action {
	w.Workloads = slices.Clone(w.Workloads)
	for i := range w.Workloads {
		w.Workloads[i].Approved = a.Approve(&w.Workloads[i])
	}
	return a.Policy.Step(m, w)
}

// Kind is a policy by its name.
type Kind struct{ Name, About string }

// The names.
const (
	None          = "none"
	NUMABalancing = "numa-balancing"
	Interleave    = "interleave"
	Numad         = "numad"
	Hand          = "hand"
	HandThreads   = "hand-threads"
	MAO           = "mao" // as MAOB
	MAOA          = "mao-a"
	MAOB          = "mao-b"
	BRM           = "brm"
	SMIPC         = "sm-ipc"
	SMMPI         = "sm-mpi"
)

// Policies lists all policies that New knows, in the order in which they are shown.
func Policies() []Kind {
	return []Kind{
		{None, "No placement: Linux alone, as the scenario sets it."},
		{NUMABalancing, "No placement, but the kernel balances: kernel.numa_balancing is 1."},
		{Interleave, "Workloads without a memory policy are started with 'numactl --interleave=all'."},
		{Numad, "A user-level daemon like Debian's numad 0.5: binds processes that use CPU and memory to the nodes that have most of both left."},
		{Hand, "Hand-optimised: placed once, by a search (over all placements up to 20,000; else one by one, then moves and swaps). Its oracle knows the demand of workloads at the peak of the day, and is simpler than the world: a reference, no ceiling."},
		{HandThreads, "Hand-optimised for single threads: each is pinned once, by a search over their placements; memory stays where it is. A reference, no ceiling, as hand. Needs single threads."},
		{MAOA, "MAO with strategy A: unbind a workload that exceeds its quota on a node that is more than 80 % busy."},
		{MAOB, "MAO with strategy B, as in its production: unbind by imbalance against the node's own history. 'mao' is the same."},
		{BRM, "Rao's Bias Random Migration: threads move, by chance and bias, to where the uncore penalty is least; their memory stays. Needs single threads."},
		{SMIPC, "Lakew's mapping of VMs by animal classes and distance, judged by instructions per cycle."},
		{SMMPI, "Lakew's mapping of VMs by animal classes and distance, judged by misses per instruction."},
	}
}

// Known reports whether New knows the name.
func Known(name string) bool {
	if name == MAO {
		return true
	}
	for _, k := range Policies() {
		if k.Name == name {
			return true
		}
	}
	return false
}

// names lists the names, for an error.
func names() string {
	var all []string
	for _, k := range Policies() {
		all = append(all, k.Name)
	}
	return strings.Join(all, ", ")
}

// Options are what policies need besides windows. Each policy uses its own.
type Options struct {
	MAO   mao.Config
	Numad numad.Config
	BRM   brm.Config
	// Animal is for SMIPC and SMMPI; the metric follows from the name.
	Animal vmmap.Config
	// What the oracle of Hand knows.
	System memsys.System
	Specs  []sim.Spec
	// Patient makes the policies that place by hand wait until all workloads have come, and
	// then place them once: on many nodes a search for each arrival takes long.
	Patient bool
	// Stop ends a search of Hand on many nodes early, when its result is no longer needed;
	// nil: never.
	Stop func() bool
	// Memo shares the searches of Hand; nil: each world has its own.
	Memo *Memo
}

// New makes a policy. MAO's strategy follows from the name.
func New(name string, o Options) (Policy, error) {
	switch name {
	case None, NUMABalancing, Interleave:
		return idlePolicy(name), nil
	case Numad:
		return &stepped[numad.Config, numad.State]{name: name, config: o.Numad, step: numad.Step}, o.Numad.Validate()
	case Hand:
		return newHand(o), nil
	case HandThreads:
		return newHandThreads(o), nil
	case MAO, MAOA, MAOB:
		o.MAO.Strategy, _ = StrategyOf(name)
		return &stepped[mao.Config, mao.State]{name: name, config: o.MAO, step: mao.Step}, o.MAO.Validate()
	case BRM:
		return &stepped[brm.Config, brm.State]{name: name, config: o.BRM, step: brm.Step}, o.BRM.Validate()
	case SMIPC, SMMPI:
		if o.Animal.Metric = vmmap.IPC; name == SMMPI {
			o.Animal.Metric = vmmap.MPI
		}
		return &stepped[vmmap.Config, vmmap.State]{name: name, config: o.Animal, step: vmmap.Step}, o.Animal.Validate()
	}
	return nil, fmt.Errorf("unknown policy %q: want one of %s", name, names())
}

// StrategyOf is MAO's strategy by a policy's name; false: the policy is not MAO.
func StrategyOf(name string) (mao.Strategy, bool) {
	switch name {
	case MAOA:
		return mao.StrategyA, true
	case MAO, MAOB:
		return mao.StrategyB, true
	}
	return "", false
}

// Prepare sets what belongs to the arm in a world: Linux's NUMA balancing, and how
// workloads start.
func Prepare(name string, c *sim.Config) {
	switch name {
	case NUMABalancing:
		c.Linux.NUMABalancing = true
	case Interleave:
		c.Interleave = true
	}
}

// Actuate is how a policy acts. numad moves a process's memory in one go, at any cost
// (migrate_pages in bind_process_and_migrate_memory). A placement by hand is made once, and
// the operator knows that it pays. Lakew's mapping moves all of a VM's memory after its
// CPUs, as libvirt does: as fast as possible, without asking whether it pays, and after
// every new mapping (a guest's memory is anonymous, so no page cache). All of them set CPUs
// first.
func Actuate(name string, c actuate.Config) actuate.Config {
	switch name {
	case Numad:
		c.Rate, c.MaxStall, c.PageCache = 0, 0, false
		c.PayRatio, c.WhenUnknown, c.Way = leastPay, actuate.MoveAnyway, actuate.AlwaysCPUsFirst
	case Hand:
		c.PayRatio, c.WhenUnknown, c.Way = leastPay, actuate.MoveAnyway, actuate.AlwaysCPUsFirst
	case SMIPC, SMMPI:
		c.Rate, c.MaxStall, c.PageCache, c.HotFirst = 0, 0, false, false
		c.PayRatio, c.WhenUnknown, c.PingPongDoublings, c.Way = leastPay, actuate.MoveAnyway, 0, actuate.AlwaysCPUsFirst
	}
	return c
}

// leastPay is a pay ratio at which all memory that is read at all is worth moving.
const leastPay = 1e-9

// idlePolicy does nothing.
type idlePolicy string

func (n idlePolicy) Name() string                                      { return string(n) }
func (idlePolicy) Step(machine.Machine, window.Window) []action.Action { return nil }

// stepped is a policy that is a pure function of its configuration, its state and a window,
// such as mao.Step.
type stepped[C, S any] struct {
	name   string
	config C
	state  S
	step   func(machine.Machine, C, S, window.Window) (S, []action.Action, []action.Reason)
}

func (p *stepped[C, S]) Name() string { return p.name }

func (p *stepped[C, S]) Step(m machine.Machine, w window.Window) (actions []action.Action) {
	p.state, actions, _ = p.step(m, p.config, p.state, w)
	return actions
}
