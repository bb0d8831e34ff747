// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// One thread first-touches everything (Cates, papers §5: "a master thread that
// first-touches everything"). A page is placed on the node of the CPU that
// touches it first; memory that one thread initialises stays on its node.
//
//  1. Threads run elsewhere: SpreadShare of the process's CPU time or more is on nodes
//     other than that of number 2. They are spread: no single other node has TouchShare
//     of it. A process that runs on one node and has its memory on another was moved,
//     or its node was full when it asked for memory: rules remote-workload,
//     allocation-fallback and page-cache-fills-node.
//  2. TouchShare of its private memory is on one node.
//  3. No policy puts it there, and the process may use memory of other nodes.
//  4. Cost: its part of its workload's loss, by CPU time.
func firstTouch(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if len(s.Processes) == 0 {
		return nil, []Skipped{skip("no process was looked at")}
	}
	for _, p := range s.Processes {
		private := l.private(p)
		cpu := shares(p.CPUByNode, len(s.Machine.Nodes))
		if p.Guest != nil { // rule vm-flat-topology
			continue
		}
		if sumOf(p.CPUByNode) < c.MinCPU && cpu != nil || cpu == nil && allKnown(p.CPUByNode, len(s.Machine.Nodes)) {
			continue // idle
		}
		if cpu == nil || private == nil && len(p.Mappings) == 0 {
			skipped = append(skipped, skip("no CPU time or no memory by node of the process: "+orElse(p.MemoryHow, "not read"), processName(p)))
			continue
		}
		i := l.touched(p, private, cpu)
		if i < 0 {
			continue
		}
		policy := l.policies(p)
		if len(p.Mappings) == 0 {
			skipped = append(skipped, skip("one node has its memory, but its policies were not read", processName(p)))
			continue
		}
		if len(policy) > 0 { // 3
			continue
		}
		found = append(found, l.touchFinding(p, i, private, cpu))
	}
	return found, skipped
}

// touched is numbers 1 to 3: the node, or -1.
func (l view) touched(p snapshot.Process, private, cpu []float64) int {
	i := slices.IndexFunc(private, func(part float64) bool { return part >= l.c.TouchShare })
	if i < 0 || 1-cpu[i] < l.c.SpreadShare || slices.Max(cpu) >= l.c.TouchShare {
		return -1
	}
	memory := l.Machine.NodesWithMemory()
	if p.Mems.IsEmpty() || p.Mems.Intersect(memory).Len() < 2 { // unknown, or nothing else is allowed
		return -1
	}
	return i
}

// private are the parts of a process's private memory by node; nil when unknown
// or too little.
func (l view) private(p snapshot.Process) []float64 {
	n := len(l.Machine.Nodes)
	by := make([]unit.Bytes, n)
	sum := unit.Bytes(0)
	for _, kind := range []snapshot.MappingKind{snapshot.Heap, snapshot.Anon, snapshot.Huge} {
		for i := range by {
			by[i] += at(p.ByKind[kind], i)
			sum += at(p.ByKind[kind], i)
		}
	}
	if sum < l.c.MinMemory {
		return nil
	}
	return byteShares(by, n)
}

// policies are the memory policies, other than the default, of mappings that hold
// more than a tenth of the private memory.
func (l view) policies(p snapshot.Process) []string {
	var out []string
	by, sum := map[string]unit.Bytes{}, unit.Bytes(0)
	for _, m := range p.Mappings {
		if m.Kind != snapshot.Heap && m.Kind != snapshot.Anon && m.Kind != snapshot.Huge {
			continue
		}
		for _, b := range m.ByNode {
			by[m.Policy] += b
			sum += b
		}
	}
	for policy, b := range by {
		if policy != "default" && policy != "local" && b*10 > sum {
			out = append(out, policy)
		}
	}
	slices.Sort(out)
	return out
}

func (l view) touchFinding(p snapshot.Process, i int, private, cpu []float64) Finding {
	nodes := l.nodesUsed(cpu, i)
	f := Finding{
		Title:   fmt.Sprintf("One thread of %s touched its memory first: %s is on node %d", processName(p), render.Percent(private[i]), l.id(i)),
		Subject: ofProcess(p),
		Evidence: []Evidence{
			l.spread("private memory", private, unit.HowMeasured, orElse(p.MemoryHow, "numa_maps")),
			l.spread("CPU time", cpu, unit.HowEstimated, "where its threads last ran"),
			fact("policy", "default", unit.HowMeasured, "numa_maps"),
			fact("nodes it may use", p.Mems.String(), unit.HowMeasured, "Mems_allowed"),
		},
		Cause: "A page is placed on the node of the thread that touches it first. Here one thread set everything up, and threads of other nodes use it from afar." + l.orSpilled(cpu, i),
		Remedy: "Let each thread initialise what it will use. Without a change of the program: stop it, and start it again with its memory interleaved over " +
			"the nodes it runs on, which evens out latency and bandwidth. Run it as the same user. Replace COMMAND… with the command line of " + processName(p) + ".",
		Commands: []string{restartUnderNumactl(p, "--interleave="+nodes.String(), "")},
	}
	f.Afterwards = stillRemote(l.remoteNow(p, 1-cpu[i]), nodes)
	f.Cost, f.draws = l.processLoss(p) // 4
	f.Evidence = append(f.Evidence, l.place(func(q snapshot.Place) bool { return q.PID == p.PID })...)
	return f
}

// remoteNow is the remote share of a process's reads: its workload's where that is
// counted, else the part of its CPU time that is away from its memory. Where threads last
// ran is a rough guide: in the lab it said 76% where 41% were counted.
func (l view) remoteNow(p snapshot.Process, away float64) unit.Ratio {
	if k := l.workload(p.Workload); k >= 0 {
		r := l.remoteShare(l.Window.Workloads[k])
		if share, known := r.Get(); known && r.How != unit.HowEstimated {
			return share
		}
	}
	return unit.Ratio(away)
}

// orSpilled names a node that the process runs on and that has no memory left: memory
// requested there came from another node, whichever thread touched it.
func (l view) orSpilled(cpu []float64, i int) string {
	for j, part := range cpu {
		if full, known := l.full(j); j != i && known && full && part >= l.c.SharedShare {
			return fmt.Sprintf(" Or %s had no memory left when a thread there asked for it: it has none now.", nodeName(l.id(j)))
		}
	}
	return ""
}

// nodesUsed are the nodes on which a process runs or has its memory.
func (l view) nodesUsed(cpu []float64, with int) set.NodeSet {
	out := l.nodeSet(l.id(with))
	for i, part := range cpu {
		if part >= l.c.SharedShare {
			out = out.Union(l.nodeSet(l.id(i)))
		}
	}
	return out
}

// processLoss is a process's part of its workload's loss.
func (l view) processLoss(p snapshot.Process) (unit.Value[float64], []draw) {
	k := l.workload(p.Workload)
	if k < 0 {
		return unit.UnknownValue[float64]("it is in no workload of the window, so nothing counts its reads"), nil
	}
	w := l.Window.Workloads[k]
	all, ok := w.CPU.Get()
	if !ok || all <= 0 {
		return unit.UnknownValue[float64]("no CPU time of its workload"), nil
	}
	cost := scaled(l.lostCPUs(w).cpus, min(1, sumOf(p.CPUByNode)/all), "its part, by CPU time, of what "+p.Workload+" loses")
	return cost, draws(l.remoteOf(k), cost)
}

func sumOf(by []unit.Value[float64]) float64 {
	sum := 0.0
	for _, v := range by {
		sum += v.Or(0)
	}
	return sum
}

func allKnown(by []unit.Value[float64], n int) bool {
	return len(by) == n && !slices.ContainsFunc(by, func(v unit.Value[float64]) bool { return !v.Known() })
}

func orElse(text, other string) string {
	if strings.TrimSpace(text) == "" {
		return other
	}
	return text
}
