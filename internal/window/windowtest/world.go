// SPDX-License-Identifier: Apache-2.0

package windowtest

import (
	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Apply plays the owner: it does the steps in order, changes the workloads
// accordingly and reports the outcomes in the next window. As a real owner must,
// it drops the further steps of a workload after one that was not done.
func (h *Host) Apply(steps []action.Step) {
	stopped := map[string]bool{}
	for _, s := range steps {
		if stopped[s.Workload] {
			continue
		}
		o := h.apply(s)
		if o.Status == "lost" { // as after a kill: no outcome at all
			stopped[s.Workload] = true
			continue
		}
		stopped[s.Workload] = o.Status != action.Done && o.Status != action.InProgress && o.Status != action.DryRun
		h.Report(o)
	}
}

func (h *Host) apply(s action.Step) action.Outcome {
	key := s.Workload + " " + string(s.Kind)
	if o, ok := h.faults[key]; ok {
		delete(h.faults, key)
		o.Step = s
		return o
	}
	for _, l := range h.loads {
		if l.ID == s.Workload {
			return h.do(l, s)
		}
	}
	return action.Outcome{Step: s, Status: action.Gone}
}

func (h *Host) do(l *Load, s action.Step) action.Outcome {
	b := &l.Binding
	switch s.Kind {
	case action.SetCPUs:
		h.keepBefore(l)
		b.CPUs, b.OursCPUs = s.CPUs, true
	case action.SetMems:
		from := h.others(s.Nodes)
		if !b.Mems.IsEmpty() {
			from = from.Intersect(b.Mems) // cpuset_migrate_mm: from the old mems_allowed only
		}
		b.Mems, b.OursMems = s.Nodes, true
		h.move(l, from, s.Nodes, 1<<60, true)
	case action.MovePages:
		budget := s.Budget
		if h.Mover > 0 {
			budget = min(budget, h.Mover)
		}
		moved, left := h.move(l, s.From, s.Nodes, budget, false)
		status := action.Done
		if left > 0 {
			status = action.InProgress
		}
		return action.Outcome{Step: s, Status: status, Moved: moved}
	case action.Restore:
		if b.OursCPUs {
			b.CPUs = l.before.CPUs
		}
		if b.OursMems {
			b.Mems = l.before.Mems
		}
		b.OursCPUs, b.OursMems = false, false
	}
	h.Spread(l)
	h.Serve(l)
	return action.Outcome{Step: s, Status: action.Done}
}

func (h *Host) keepBefore(l *Load) {
	if !l.Binding.OursCPUs && !l.Binding.OursMems {
		l.before = l.Binding
	}
}

func (h *Host) others(nodes set.NodeSet) set.NodeSet {
	return h.Machine.NodeIDs().Minus(nodes)
}

// move moves anon pages, then file pages, up to a budget, spread evenly.
func (h *Host) move(l *Load, from, to set.NodeSet, budget unit.Bytes, anonOnly bool) (moved, left unit.Bytes) {
	for _, by := range [][]unit.Value[unit.Bytes]{l.AnonByNode, l.FileByNode} {
		for i := range by {
			if !from.Has(h.nodes[i].id) {
				continue
			}
			have := by[i].Or(0)
			take := min(have, budget-moved)
			by[i] = unit.Measured(have-take, "script")
			h.addBytes(by, to, take)
			moved += take
			left += have - take
		}
		if anonOnly {
			break
		}
	}
	h.Serve(l)
	return moved, left
}

func (h *Host) addBytes(by []unit.Value[unit.Bytes], to set.NodeSet, amount unit.Bytes) {
	n := unit.Bytes(max(1, to.Len()))
	for i := range by {
		if to.Has(h.nodes[i].id) {
			by[i] = unit.Measured(by[i].Or(0)+amount/n, "script")
		}
	}
}

// Serve redistributes a workload's DRAM reads by its CPU and page shares; it
// does nothing when they are unknown.
func (h *Host) Serve(l *Load) {
	all, ok := l.Loads()
	ratio, known := window.FeaturesOf(l.Workload, h.Length).LocalPageRatio.Get()
	if !ok || !known {
		return
	}
	local := uint64(all * float64(ratio))
	l.LocalLoads = unit.Measured(local, "script")
	l.RemoteLoads = unit.Measured(uint64(all)-local, "script")
}
