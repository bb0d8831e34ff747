// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"homenode/internal/action"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// A Bind of a workload that is already bound to other nodes:
//
//  1. Widen: mems that were set get the new nodes as well, and keep the old ones. That
//     write moves nothing, pages may go to the new nodes from now on (move_pages
//     refuses nodes outside cpuset.mems, EACCES in do_pages_move), and no thread runs
//     where it may not allocate. Left out if mems were not set, or have all the new
//     nodes: then no call to the kernel is needed.
//  2. The new nodes' CPUs, pages, mems: as for a first Bind. If the new nodes include
//     the old ones, 1 has already set the final mems, and no page need move.
//
// So for more nodes mems go first and CPUs after, for fewer CPUs first and mems last,
// and for others both. What the workload had before the first Bind is kept, and new
// nodes are checked against what it might use then. The Bind is refused if none of them
// may be used: then everything stays.
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

// mems are the mems that we set; empty: none.
func (j *Job) mems() set.NodeSet {
	if j.MemsSet {
		return j.Nodes
	}
	return j.Held
}

// heldBy is the mems in the window, if they are there: the outcome of a write may be
// lost.
func (r *round) heldBy(j *Job) set.NodeSet {
	if wl, ok := r.workload(j.Workload); ok && wl.Binding.OursMems && !wl.Binding.Mems.IsEmpty() {
		return wl.Binding.Mems
	}
	return j.mems()
}

// mayHave checks nodes against what the workload might use before the first Bind.
func (j *Job) mayHave(nodes set.NodeSet) bool {
	return j.MayMems.IsEmpty() || nodes.SubsetOf(j.MayMems)
}

func (j *Job) onlyMems() action.Reason {
	return action.Reason{Rule: "actuate.only-mems", Nodes: j.MayMems}
}

// widenOutcome is for number 1. A failure ends the binding: more nodes were asked for
// because the old ones are not enough.
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
