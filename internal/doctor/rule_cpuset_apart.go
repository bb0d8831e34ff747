// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A cpuset's CPUs and memory are on different nodes, wholly or in part.
//
//  1. The nodes on which its CPUs should have memory: their own; for a node without
//     memory the nearest that has some.
//  2. Those that are missing from its mems are apart.
//  3. Partly apart counts only if the workload uses SpreadShare of its CPU time there;
//     wholly apart always counts, unless the cpuset has no task.
//  4. Cost: what it loses to remote memory; partly apart, the same.
func cpusetApart(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for k, w := range s.Window.Workloads {
		runs := l.nodesOf(w.Binding.CPUs)
		if runs.IsEmpty() || w.Binding.Mems.IsEmpty() {
			skipped = append(skipped, skip("the CPUs or nodes it may use are unknown", w.ID))
			continue
		}
		wanted := l.memoryNodes(runs) // 1
		apart := wanted.Minus(w.Binding.Mems)
		tasks, ok := w.Tasks.Get()
		if apart.IsEmpty() || ok && tasks == 0 { // 2
			continue
		}
		if !ok && w.CPU.Or(0) <= 0 {
			skipped = append(skipped, skip("its CPUs and memory are apart, but whether it has a task is unknown", w.ID))
			continue
		}
		if wanted.Overlaps(w.Binding.Mems) { // 3
			cpu := l.cpuShares(w)
			if cpu == nil {
				if w.CPU.Or(1) > 0 {
					skipped = append(skipped, skip("its CPU time by node is unknown, so nothing says whether it runs apart", w.ID))
				}
				continue
			}
			if l.partOn(cpu, apart) < c.SpreadShare || w.CPU.Or(0) < c.MinCPU {
				continue
			}
		}
		found = append(found, l.apartFinding(k, runs, wanted, apart))
	}
	return found, skipped
}

// memoryNodes is number 1.
func (l view) memoryNodes(runs set.NodeSet) set.NodeSet {
	var out set.NodeSet
	for id := range runs.All() {
		i, _ := l.index(id)
		if total, ok := l.total(i).Get(); ok && total == 0 {
			if near := l.nearest(id, func(j int) bool { return l.total(j).Or(0) > 0 }); len(near) > 0 {
				id = near[0]
			}
		}
		out = out.Union(l.nodeSet(id))
	}
	return out
}

func (l view) partOn(cpu []float64, nodes set.NodeSet) float64 {
	sum := 0.0
	for i, part := range cpu {
		if nodes.Has(l.id(i)) {
			sum += part
		}
	}
	return sum
}

func (l view) apartFinding(k int, runs, wanted, apart set.NodeSet) Finding {
	w := l.Window.Workloads[k]
	lost := l.lostCPUs(w)
	wholly := "partly "
	if !wanted.Overlaps(w.Binding.Mems) {
		wholly = ""
	}
	return Finding{
		Title:   fmt.Sprintf("CPUs and memory of %s are %son different nodes: CPUs %v, memory %v", w.ID, wholly, runs, w.Binding.Mems),
		Subject: ofWorkload(w.ID), Cost: lost.cpus, draws: draws(l.remoteOf(k), lost.cpus), // 4
		Evidence: append([]Evidence{
			fact("CPUs it may use", w.Binding.CPUs.String()+" ("+nodeNames(runs)+")", unit.HowMeasured, "cpuset.cpus.effective"),
			fact("nodes it may use", w.Binding.Mems.String(), unit.HowMeasured, "cpuset.mems.effective"),
		}, l.remoteEvidence(w, lost)...),
		Cause:    fmt.Sprintf("Its cpuset lets it run on %s and keeps its memory away from there.%s", nodeNames(apart), pinnedWhy(w)),
		Remedy:   "Give it memory of the nodes it runs on; the kernel moves the pages it has." + managed(w),
		Commands: l.bind(w, set.CPUSet{}, wanted), Afterwards: l.askManager(w),
	}
}

func pinnedWhy(w window.Workload) string {
	if w.Binding.PinnedWhy == "" {
		return ""
	}
	return " (" + w.Binding.PinnedWhy + ")"
}
