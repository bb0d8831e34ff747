// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"homenode/internal/action"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// A Bind of what is bound to other nodes already:
//
//  1. Widen: mems that were set come to have the new nodes as well, and keep the old
//     ones: nothing is moved by that write, pages may go to the new nodes from now on
//     (move_pages refuses nodes outside cpuset.mems, EACCES in do_pages_move), and no
//     thread runs where it may not allocate. Left out where mems were not set, or have
//     all the new nodes: then the kernel need not be asked.
//  2. The new nodes' CPUs, pages, mems: as for a first Bind. Where the new nodes are
//     more than the old ones, 1 has set the mems for good, and no page need move.
//
// So more nodes come by mems first and CPUs after, fewer by CPUs first and mems last,
// and others by both. What the workload had before the first Bind is kept, and what it
// may use is held against that. Refused where nothing of it may be used: then all stays
// as it is.
func (r *round) relocate(j *Job, a action.Action) {
	cpus := r.usable(a, j.May)
	switch {
	case cpus.IsEmpty():
		r.reportStays(a, noCPU(a))
		return
	case !j.mayHave(a.Nodes):
		r.reportStays(a, j.onlyMems())
		return
	}
	held := r.heldBy(j)
	j.Nodes, j.CPUs, j.Wanted, j.CPUsOnly, j.Reason = a.Nodes, cpus, a.CPUs, a.CPUsOnly, a.Reason
	j.MemsSet, j.Held = held == a.Nodes, held
	if j.MemsSet {
		j.Held = set.NodeSet{}
	}
	j.Moving, j.Waiting, j.HotHome, j.Floor, j.Pays = false, false, false, 0, unit.None[migration.Verdict]()
	j.Way, j.Pace = Way{}, Pace{}
	j.enter(StageCPUs)
	if !held.IsEmpty() && !a.Nodes.SubsetOf(held) { // 1
		j.enter(StageWiden)
	}
}

// mems are what its mems were set to by us; empty: nothing.
func (j *Job) mems() set.NodeSet {
	if j.MemsSet {
		return j.Nodes
	}
	return j.Held
}

// heldBy is mems as the window has them, where it does: the outcome of a write may be
// lost.
func (r *round) heldBy(j *Job) set.NodeSet {
	if wl, ok := r.workload(j.Workload); ok && wl.Binding.OursMems && !wl.Binding.Mems.IsEmpty() {
		return wl.Binding.Mems
	}
	return j.mems()
}

// mayHave holds nodes against what the workload might use before the first Bind.
func (j *Job) mayHave(nodes set.NodeSet) bool {
	return j.MayMems.IsEmpty() || nodes.SubsetOf(j.MayMems)
}

func (j *Job) onlyMems() action.Reason {
	return action.Reason{Rule: "actuate.only-mems", Nodes: j.MayMems}
}

// widenOutcome is of number 1. One that does not succeed ends the binding: more nodes
// were asked for because the old ones are not enough.
func (r *round) widenOutcome(j *Job, o *action.Outcome) {
	switch o.Status {
	case action.Done: // in progress: asked for again, until it is done
		j.Held = o.Step.Nodes
		if j.MemsSet = j.Held == j.Nodes; j.MemsSet {
			j.Held = set.NodeSet{}
		}
		j.enter(StageCPUs)
	case action.DryRun, action.Drifted:
		j.ends(o)
	case action.Refused:
		r.report(*j, action.Refused, because("actuate.refused", o.Detail))
		j.ends(o)
	case action.Failed:
		r.failed(j, o.Detail)
	}
}
