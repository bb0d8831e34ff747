// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/window"
)

// The files of a cgroup, by the kernel's names.
const (
	cpusFile = "cpuset.cpus"
	memsFile = "cpuset.mems"
)

// Cpuset is the cpuset of a workload's cgroup: what it may use, and what set that.
type Cpuset struct {
	ID, Owner string
	CPUs      set.CPUSet  // that it may use now: cpuset.cpus.effective
	Mems      set.NodeSet // likewise
	Bound     bool        // it is narrower than the machine

	// What the cgroup above it has: all of the machine (on v2 only nodes with memory are in
	// cpuset.mems.effective).
	parentCPUs set.CPUSet
	parentMems set.NodeSet

	startCPUs          set.CPUSet  // in its cpuset.cpus when it arrived
	ownCPUs            set.CPUSet  // in its cpuset.cpus now; empty: it has its parent's
	ownMems            set.NodeSet // likewise
	oursCPUs, oursMems bool

	whyCPUs, whyMems, whyBoth string // why it is pinned; "": it is not pinned

	busy   float64 // share of writes that are refused with EBUSY
	random detmath.Random
}

// newCpuset is the cpuset of an arriving workload. Its memory policy is that of its start.
func newCpuset(c Config, s *Spec, id, owner string, policy linux.Policy) Cpuset {
	own := s.Start.CPUs
	k := Cpuset{
		ID: id, Owner: owner, parentCPUs: onlineCPUs(c.Machine), parentMems: c.Machine.NodesWithMemory(),
		startCPUs: own, ownCPUs: own, busy: c.Linux.Busy, random: detmath.NewRandom(c.Seed, id, "busy"),
	}
	k.CPUs, k.Mems = k.parentCPUs, k.parentMems
	if !own.IsEmpty() {
		k.CPUs = own
	}
	k.rebound()
	k.pinned(s, policy)
	return k
}

func (k *Cpuset) rebound() { k.Bound = k.CPUs != k.parentCPUs || k.Mems != k.parentMems }

// pinned says what was set before, in the words of the kernel's reader.
func (k *Cpuset) pinned(s *Spec, policy linux.Policy) {
	if k.CPUs != k.parentCPUs {
		k.whyCPUs = fmt.Sprintf("its own %s is %s, its parent has %s", cpusFile, k.CPUs, k.parentCPUs)
	}
	if policy.Mode == linux.Local {
		return
	}
	nodes := s.Start.Bind.Union(s.Start.Interleave)
	if nodes.IsEmpty() {
		nodes = k.parentMems
	}
	k.whyMems = fmt.Sprintf("100.0%% of its sampled pages have a policy of their own (%s:%s)", policy.Mode, nodes)
	k.whyBoth = k.whyCPUs + "; " + k.whyMems
}

// tell says what set it, as the kernel's reader does. The journal knows what homenode set;
// anything else narrower than the parent was set by another process.
func (k *Cpuset) tell(b *window.Binding) {
	b.CPUs, b.Mems, b.OursCPUs, b.OursMems = k.CPUs, k.Mems, k.oursCPUs, k.oursMems
	b.PinnedCPUs = !k.oursCPUs && k.CPUs != k.parentCPUs
	b.PinnedMems = k.whyMems != ""
	switch {
	case b.PinnedCPUs && b.PinnedMems:
		b.PinnedWhy = k.whyBoth
	case b.PinnedCPUs:
		b.PinnedWhy = k.whyCPUs
	case b.PinnedMems:
		b.PinnedWhy = k.whyMems
	}
}

// Foreign says why only its owner may change it; "": it has no owner.
func (k *Cpuset) Foreign() string {
	if k.Owner == noOwner {
		return ""
	}
	return fmt.Sprintf("act on %s: refused: owned by %s, which would overwrite or be confused by a direct write: name it in direct_owners to allow that", k.ID, k.Owner)
}

// refusal says why the cgroup owner would refuse a step, in its words (owner/cgroup:
// mayAct, Plan, fits); "" if it would not. The limits are the parent's sets. A cpuset that
// another process set is no limit: it is shown as pinned, and policies must respect that.
// One refusal is the simulator's own, and says so: for a move to nodes outside cpuset.mems,
// the kernel would fail page by page (EACCES).
func (k *Cpuset) refusal(s action.Step) string {
	if why := k.Foreign(); why != "" && s.Kind != action.Restore {
		return why
	}
	switch s.Kind {
	case action.SetCPUs:
		return outside(k.ID+" "+cpusFile, s.CPUs, k.parentCPUs)
	case action.SetMems:
		return outside(k.ID+" "+memsFile, s.Nodes, k.parentMems)
	case action.MovePages:
		if missing := s.Nodes.Minus(k.Mems); !missing.IsEmpty() || s.Nodes.IsEmpty() {
			return fmt.Sprintf("move pages of %s to nodes %q: refused by the simulator: its %s has nodes %s only", k.ID, s.Nodes, memsFile, k.Mems)
		}
	case action.Restore:
	default:
		return fmt.Sprintf("take step %s for %s: refused: it sets nothing", s.Kind, k.ID)
	}
	return ""
}

func outside[K set.Kind](setting string, want, parent set.Set[K]) string {
	if want.IsEmpty() {
		return fmt.Sprintf("set %s: refused: an empty set binds nothing", setting)
	}
	if missing := want.Minus(parent); !missing.IsEmpty() {
		return fmt.Sprintf("set %s to %s: refused: its parent has %s only, not %s", setting, want, parent, missing)
	}
	return ""
}

// busyNow draws whether a write is refused with EBUSY.
func (k *Cpuset) busyNow() bool { return k.busy > 0 && k.random.Float() < k.busy }

func ebusy(s action.Step, setting string, value any) action.Outcome {
	detail := fmt.Sprintf("set %s to %s: refused: EBUSY: a cgroup below it has more, or it is exclusive", setting, value)
	return action.Outcome{Step: s, Status: action.Refused, Detail: detail}
}

// setCPUs does what the journal does with a setting (journal.change): a value that is
// already there is not written, and still belongs to whatever set it. changed is called
// when CPUs have changed.
func (k *Cpuset) setCPUs(s action.Step, changed func()) action.Outcome {
	if k.ownCPUs != s.CPUs {
		if k.busyNow() {
			return ebusy(s, k.ID+" "+cpusFile, s.CPUs)
		}
		k.writeCPUs(s.CPUs, changed)
		k.ownCPUs, k.oursCPUs = s.CPUs, true
	}
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s %s = %s", k.ID, cpusFile, s.CPUs)}
}

func (k *Cpuset) writeCPUs(cpus set.CPUSet, changed func()) {
	if k.CPUs != cpus {
		k.CPUs = cpus
		k.rebound()
		changed()
	}
}

// setMems does the same for mems.
func (k *Cpuset) setMems(s action.Step, changed func()) action.Outcome {
	if k.ownMems != s.Nodes {
		if k.busyNow() {
			return ebusy(s, k.ID+" "+memsFile, s.Nodes)
		}
		k.writeMems(s.Nodes, changed)
		k.ownMems, k.oursMems = s.Nodes, true
	}
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s %s = %s", k.ID, memsFile, s.Nodes)}
}

func (k *Cpuset) writeMems(nodes set.NodeSet, changed func()) {
	if k.Mems != nodes {
		k.Mems = nodes
		k.rebound()
		changed()
	}
}

// restore puts back what was there before the first step. Moved pages stay.
func (k *Cpuset) restore(s action.Step, changedCPUs, changedMems func()) action.Outcome {
	was := k.parentCPUs
	if !k.startCPUs.IsEmpty() {
		was = k.startCPUs
	}
	k.writeCPUs(was, changedCPUs)
	k.writeMems(k.parentMems, changedMems)
	k.ownCPUs, k.ownMems = k.startCPUs, set.NodeSet{}
	k.oursCPUs, k.oursMems = false, false
	return action.Outcome{Step: s, Status: action.Done}
}

// startPolicy is the memory policy for a workload's new pages.
func startPolicy(c Config, s *Spec) linux.Policy {
	in := func(nodes set.NodeSet) []bool { return indexes(c.Machine, nodes) }
	switch {
	case !s.Start.Bind.IsEmpty():
		return linux.Policy{Mode: linux.Bind, Nodes: in(s.Start.Bind)}
	case !s.Start.Interleave.IsEmpty():
		return linux.Policy{Mode: linux.Interleave, Nodes: in(s.Start.Interleave)}
	case c.Interleave:
		return linux.Policy{Mode: linux.Interleave, Nodes: in(c.Machine.NodesWithMemory())}
	}
	return linux.Policy{Mode: linux.Local}
}

// indexes marks which of a machine's nodes are in a set.
func indexes(m machine.Machine, nodes set.NodeSet) []bool {
	in := make([]bool, len(m.Nodes))
	for i := range in {
		in[i] = nodes.Has(m.Nodes[i].ID)
	}
	return in
}
