// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// NUMA balancing thrashes: it moves pages to threads that have left by then (MAO,
// papers §1: most runs between context switches are shorter than 100 µs, so pages chase
// threads).
//
//  1. It is on, and faults often enough to be judged (HintFaults).
//  2. It has not converged: fewer than ConvergedShare of its faults are local.
//  3. It costs Slight of the busy time or more: pages moved × MigrateSecondsPerGiB +
//     faults × HintFaultSeconds + table entries × PTESeconds.
//
// A workload that has just started looks the same for a minute: the remedy says so.
func balancingThrash(s snapshot.Snapshot, c Config) ([]Finding, []Skipped) {
	l := view{s, c}
	b := s.Balancing
	local, judged, why := l.hintShare()
	if why != "" {
		return nil, []Skipped{skip(why)}
	}
	cost := l.balancingCost()
	busy := l.busy()
	spent, ok1 := cost.Get()
	used, ok2 := busy.Get()
	switch {
	case !judged || local >= c.ConvergedShare: // 1, 2
		return nil, nil
	case !ok1:
		return nil, []Skipped{skip(because(cost))}
	case !ok2:
		return nil, []Skipped{skip(because(busy))}
	case used <= 0 || spent < c.Slight*used: // 3
		return nil, nil
	}
	return []Finding{{
		Title:   "NUMA balancing moves pages without getting anywhere",
		Subject: Subject{Kind: SubjectHost}, Cost: cost, draws: draws(account{of: balancing}, cost),
		Evidence: []Evidence{
			shown("numa_balancing", b.Mode),
			figured("pages moved", l.perSecond(b.PagesMigrated), "pages/s"),
			figured("hinting faults", l.perSecond(b.HintFaults), "/s"),
			fact("of these local", render.Percent(local), min(b.HintFaults.How, b.HintLocal.How), b.HintLocal.From),
			figured("table entries taken away", l.perSecond(b.PTEUpdates), "/s"),
			figured("moves that failed", l.perSecond(b.MigrateFailed), "/s"),
		},
		Cause: "The kernel takes page table entries away to see which threads touch the pages, and moves them to the threads it sees. " +
			"The threads run elsewhere by the time the pages arrive, or several nodes use the same pages.",
		Remedy: "If it still does so a minute from now (what has just started looks the same), switch it off, and place the workloads instead.",
		Commands: []string{
			"sysctl kernel.numa_balancing=0",
			"homenode agent --dry-run",
		},
		Afterwards: "Moving and faulting end. Reads that are remote stay remote until the workloads are placed: homenode agent does that.",
	}}, nil
}

// hintShare is the local share of hinting faults. judged is false when balancing is off
// or too few were counted. why names what is unknown.
func (l view) hintShare() (local float64, judged bool, why string) {
	b := l.Balancing
	mode, ok := b.Mode.Get()
	if !ok {
		return 0, false, "whether NUMA balancing is on is unknown: " + because(b.Mode)
	}
	if mode == 0 {
		return 0, false, ""
	}
	faults, ok1 := b.HintFaults.Get()
	near, ok2 := b.HintLocal.Get()
	rate, ok3 := l.perSecond(b.HintFaults).Get()
	if !ok1 || !ok2 || !ok3 {
		return 0, false, "no counters of NUMA hinting faults: " + because(b.HintFaults)
	}
	if rate < l.c.HintFaults || faults == 0 {
		return 0, false, ""
	}
	return min(1, float64(near)/float64(faults)), true, ""
}

// balancingCost is number 3, in CPUs' worth.
func (l view) balancingCost() unit.Value[float64] {
	b := l.Balancing
	moved, ok1 := l.perSecond(b.PagesMigrated).Get()
	faults, ok2 := l.perSecond(b.HintFaults).Get()
	page, ok3 := l.Machine.PageSize.Get()
	if !ok1 || !ok2 {
		return unit.UnknownValue[float64]("no counters of migrated pages: " + because(b.PagesMigrated))
	}
	if !ok3 {
		return unit.UnknownValue[float64]("the page size is unknown")
	}
	ptes := l.perSecond(b.PTEUpdates).Or(0)
	gib := moved * float64(page) / float64(unit.GiB)
	return unit.Estimated(gib*l.c.MigrateSecondsPerGiB+faults*l.c.HintFaultSeconds+ptes*l.c.PTESeconds,
		"pages moved × 0.65 s/GB (MAO) + hinting faults and table entries at their usual price")
}

// NUMA balancing fights a binding: it is on, and wants to move pages to nodes that the
// binding forbids.
//
//  1. It is on and faults often enough to be judged.
//  2. Its faults are mostly remote, or its moves fail (FailedShare).
//  3. A workload's memory is bound to nodes on which it has no CPUs, or a process's
//     policy binds its memory to nodes on which it does not run.
//  4. Cost: all that balancing costs.
func balancingFights(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	local, judged, why := l.hintShare()
	if why != "" {
		return nil, []Skipped{skip(why)}
	}
	failed := l.failedMoves()
	if !judged || local >= c.ConvergedShare && failed < c.FailedShare { // 1, 2
		return nil, nil
	}
	evidence := []Evidence{
		shown("numa_balancing", s.Balancing.Mode),
		figured("hinting faults", l.perSecond(s.Balancing.HintFaults), "/s"),
		fact("of these local", render.Percent(local), s.Balancing.HintLocal.How, s.Balancing.HintLocal.From),
		figured("moves that failed", l.perSecond(s.Balancing.MigrateFailed), "/s"),
	}
	for _, w := range s.Window.Workloads { // 3
		cpus := l.nodesOf(w.Binding.CPUs)
		if cpus.IsEmpty() || w.Binding.Mems.IsEmpty() || cpus.Overlaps(w.Binding.Mems) || w.CPU.Or(0) < c.MinCPU {
			continue
		}
		f := l.fightFinding(ofWorkload(w.ID), w.ID, cpus, w.Binding.Mems, evidence,
			append(l.bind(w, set.CPUSet{}, l.memoryNodes(cpus)), "sysctl kernel.numa_balancing=0"))
		f.Remedy += managed(w)
		f.Afterwards = l.askManager(w)
		found = append(found, f)
	}
	for _, p := range s.Processes {
		nodes, where := l.boundElsewhere(p)
		if nodes.IsEmpty() {
			continue
		}
		found = append(found, l.fightFinding(ofProcess(p), processName(p), where, nodes, evidence,
			append(movePages([]int{p.PID}, nodes, where, 1), "sysctl kernel.numa_balancing=0")))
	}
	return found, nil
}

func (l view) fightFinding(who Subject, name string, cpus, mems set.NodeSet, evidence []Evidence, commands []string) Finding {
	cost := l.balancingCost()
	return Finding{
		Title:   "NUMA balancing fights the binding of " + name,
		Subject: who, Cost: cost, draws: draws(account{of: balancing}, cost), // 4
		Evidence: append([]Evidence{
			fact("runs on", nodeNames(cpus), unit.HowMeasured, "cpuset, or where its threads last ran"),
			fact("memory bound to", nodeNames(mems), unit.HowMeasured, "cpuset, or its policy"),
		}, evidence...),
		Cause:    "Balancing takes the pages' table entries away again and again to move them to the CPUs that use them, and the binding forbids that.",
		Remedy:   "Let CPUs and memory have the same nodes; or, if the binding is meant, switch balancing off: it can only cost.",
		Commands: commands,
	}
}

func (l view) failedMoves() float64 {
	failed, ok1 := l.Balancing.MigrateFailed.Get()
	moved, ok2 := l.Balancing.PagesMigrated.Get()
	if !ok1 || !ok2 || failed == 0 {
		return 0
	}
	return float64(failed) / (float64(failed) + float64(moved))
}

// boundElsewhere finds a process whose policy binds most of its private memory
// to nodes that its threads do not run on.
func (l view) boundElsewhere(p snapshot.Process) (bound, runs set.NodeSet) {
	cpu := shares(p.CPUByNode, len(l.Machine.Nodes))
	policies := l.policies(p)
	if cpu == nil || len(policies) != 1 || sumOf(p.CPUByNode) < l.c.MinCPU {
		return bound, runs
	}
	nodes, ok := bindNodes(policies[0])
	if !ok {
		return bound, runs
	}
	for i, part := range cpu {
		if part < l.c.SharedShare {
			continue
		}
		if nodes.Has(l.id(i)) {
			return set.NodeSet{}, set.NodeSet{}
		}
		runs = runs.Union(l.nodeSet(l.id(i)))
	}
	return nodes, runs
}

// bindNodes reads numa_maps' "bind:0", "bind=static:0-1" (mpol_to_str in
// mm/mempolicy.c).
func bindNodes(policy string) (set.NodeSet, bool) {
	mode, list, ok := strings.Cut(policy, ":")
	mode, _, _ = strings.Cut(mode, "=")
	if !ok || mode != "bind" {
		return set.NodeSet{}, false
	}
	nodes, err := set.ParseNodes(list)
	return nodes, err == nil && !nodes.IsEmpty()
}
