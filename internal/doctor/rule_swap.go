// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// The host swaps while a node has free memory: a binding or a policy prevents its use.
//
//  1. SwapPages a second or more go to swap or come back.
//  2. A node has no free memory left (NearLow), and another has room (FreeShare).
//  3. What swaps: the workload with most private memory on the full node, of those that
//     may not use the other one.
//  4. Cost: unknown; swapping is waiting. It decides the verdict.
func swapBesideFree(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	in, ok1 := l.perSecond(s.Swapping.In).Get()
	out, ok2 := l.perSecond(s.Swapping.Out).Get()
	if !ok1 || !ok2 {
		return nil, []Skipped{skip("what goes to swap is unknown: " + because(s.Swapping.Out))}
	}
	if in+out < c.SwapPages { // 1
		return nil, nil
	}
	for i, n := range s.Machine.Nodes {
		if l.total(i).Or(1) == 0 {
			continue
		}
		full, known := l.full(i)
		if !known {
			skipped = append(skipped, skip("the host swaps, but free memory or watermarks of the node are unknown", nodeName(n.ID)))
			continue
		}
		if room := l.nearest(n.ID, l.roomy); full && len(room) > 0 { // 2
			found = append(found, l.swapFinding(i, room[0], in, out))
		}
	}
	return found, skipped
}

func (l view) swapFinding(i, other int, in, out float64) Finding {
	id := l.id(i)
	j, _ := l.index(other)
	f := Finding{
		Title:   fmt.Sprintf("The host swaps while node %d has %v free: node %d is full", other, l.free(j).V, id),
		Subject: onNode(id), Cost: unit.UnknownValue[float64]("swapping is waiting, not CPU time"), Decides: true, // 4
		Evidence: []Evidence{
			fact("to swap", render.Amount(out)+" pages/s", l.Swapping.Out.How, l.Swapping.Out.From),
			fact("from swap", render.Amount(in)+" pages/s", l.Swapping.In.How, l.Swapping.In.From),
			shown("free on "+nodeName(id), l.free(i)), shown("low watermarks", l.mem(i).LowFree), shown("free on "+nodeName(other), l.free(j)),
		},
		Cause:      "What needs memory on the full node may not use the other one: a cpuset, a bind policy, or zone_reclaim_mode.",
		Remedy:     "Let it use the other node too, or move a workload there.",
		Commands:   []string{fmt.Sprintf("grep -l bind:%d /proc/[0-9]*/numa_maps 2>/dev/null", id), "cat /proc/sys/vm/zone_reclaim_mode"},
		Afterwards: onlyShow("what they show may use the other node"),
	}
	if k := l.confined(i, j); k >= 0 { // 3
		w := l.Window.Workloads[k]
		f.Subject.Workload = w.ID
		f.Evidence = append(f.Evidence, fact("nodes that "+w.ID+" may use", w.Binding.Mems.String(), unit.HowMeasured, "cpuset.mems.effective"))
		f.Cause = w.ID + " may use memory of " + nodeNames(w.Binding.Mems) + " only, and there is none left."
		f.Remedy += managed(w)
		f.Commands, f.Afterwards = l.bind(w, set.CPUSet{}, w.Binding.Mems.Union(l.nodeSet(other))), l.askManager(w)
	}
	return f
}

// confined is number 3; -1 if there is no such workload.
func (l view) confined(i, other int) int {
	best, most := -1, unit.Bytes(0)
	for k, w := range l.Window.Workloads {
		if b, ok := at(w.AnonByNode, i).Get(); ok && b > most && l.mayUse(w, i) && !l.mayUse(w, other) {
			best, most = k, b
		}
	}
	return best
}
