// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A workload is wider than a node: no node has the CPUs or the memory it uses, so a
// part of its accesses is remote on any node.
//
//  1. Its CPU use is above the CPUs of every node; or its quota is, and it uses nearly
//     all (HighUse) of one; or its private memory is above that of every node.
//  2. It loses by it: its share of remote reads is RemoteShare or more.
//  3. Advice: the fewest nodes that hold it, beginning where it has most and going on
//     to the nearest (Machine.Nearest); if that is all of them, interleave or split.
//  4. Cost: what it loses to remote memory.
func widerThanNode(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for k, w := range s.Window.Workloads {
		if !w.CPU.Known() && len(w.AnonByNode) == 0 {
			skipped = append(skipped, skip("its CPU use and memory are unknown", w.ID))
			continue
		}
		why := l.wide(w)
		if why == "" || w.CPU.Or(0) < c.MinCPU { // 1
			continue
		}
		remote := l.remoteShare(w)
		share, known := remote.Get()
		if !known {
			skipped = append(skipped, skip("it is wider than a node, but its share of remote reads is unknown: "+because(remote), w.ID))
		}
		if known && float64(share) >= c.RemoteShare { // 2
			found = append(found, l.wideFinding(k, why))
		}
	}
	return found, skipped
}

// highUse is the part of a node's CPUs from which a quota beyond a node counts as used.
const highUse = 0.8

// wide is number 1: the reason, or "".
func (l view) wide(w window.Workload) string {
	cpus, memory := 0.0, unit.Bytes(0)
	for i, n := range l.Machine.Nodes {
		cpus = max(cpus, float64(n.CPUs.Len()))
		total, ok := l.total(i).Get()
		if !ok {
			total = unit.Bytes(1) << 62 // unknown: no claim about memory
		}
		memory = max(memory, total)
	}
	use, quota := w.CPU.Or(0), w.Quota.Or(0)
	anon, _ := window.SumBytes(w.AnonByNode)
	switch {
	case use > cpus:
		return fmt.Sprintf("it uses %s CPUs, the largest node has %s", render.Amount(use), render.Amount(cpus))
	case quota > cpus && use >= highUse*cpus:
		return fmt.Sprintf("it uses %s of the %s CPUs it may use, the largest node has %s", render.Amount(use), render.Amount(quota), render.Amount(cpus))
	case anon > memory:
		return fmt.Sprintf("it has %v of private memory, the largest node %v", anon, memory)
	}
	return ""
}

func (l view) wideFinding(k int, why string) Finding {
	w := l.Window.Workloads[k]
	lost := l.lostCPUs(w)
	nodes := l.holding(w)
	f := Finding{
		Title:   fmt.Sprintf("%s is wider than a node: %s", w.ID, why),
		Subject: ofWorkload(w.ID), Cost: lost.cpus, draws: draws(l.remoteOf(k), lost.cpus), // 4
		Evidence: append([]Evidence{figured("quota", w.Quota, "CPUs")}, l.remoteEvidence(w, lost)...),
		Cause:    "No node holds it, so a part of its reads is remote on any node.",
	}
	if !w.Quota.Known() {
		f.Evidence = f.Evidence[1:]
	}
	if others := l.nodesFor(w).Minus(nodes); !nodes.IsEmpty() && !others.IsEmpty() {
		f.Remedy = fmt.Sprintf("Keep it on %s, the fewest nodes that hold it and the nearest to each other; or split it into one instance per node.", nodeNames(nodes)) + managed(w)
		f.Commands = l.bind(w, l.mayRunOn(w, nodes), nodes)
		f.Afterwards = orElse(l.askManager(w), stillRemote(lost.remote.Or(0), nodes))
		return f
	}
	p := l.firstProcess(k)
	f.Remedy = "It needs all nodes that it may use: split it into one instance per node, each with its own memory; or interleave its memory, which evens out what cannot be local."
	if p.PID == 0 {
		f.Commands = []string{"homenode why " + quote(w.ID)}
		f.Afterwards = onlyShow("it is split, or its memory is interleaved")
		return f
	}
	f.Afterwards = orElse(l.overruled(p), stillRemote(lost.remote.Or(0), l.memoryNodes(l.nodesFor(w))))
	f.Remedy += " For that, stop it and start it again as the command shows, with the command line of " + processName(p) + " for COMMAND…."
	f.Commands = []string{restartUnderNumactl(p, "--interleave="+l.memoryNodes(l.nodesFor(w)).String(), "")}
	return f
}

// firstProcess is the process that started the workload, as far as is known; PID 0:
// none is known.
func (l view) firstProcess(k int) snapshot.Process {
	pids := l.group(k).PIDs
	if len(pids) == 0 {
		return snapshot.Process{}
	}
	p, ok := l.process(pids[0])
	if !ok {
		p.PID, p.Name = pids[0], "the first process"
	}
	p.Workload = l.Window.Workloads[k].ID
	return p
}

// nodesFor are the nodes with CPUs on which a workload may live; all of them if its
// binding leaves none.
func (l view) nodesFor(w window.Workload) set.NodeSet {
	var out set.NodeSet
	for i, n := range l.Machine.Nodes {
		if l.mayLive(w, i) {
			out = out.Union(l.nodeSet(n.ID))
		}
	}
	if out.IsEmpty() {
		return l.Machine.NodesWithCPUs()
	}
	return out
}

// holding is number 3, of the nodes it may use; empty when not even all of them hold
// it.
func (l view) holding(w window.Workload) set.NodeSet {
	cpu := l.cpuShares(w)
	start, most := -1, -1.0
	for i, n := range l.Machine.Nodes {
		if part := at(cpu, i); l.mayLive(w, i) && part > most {
			start, most = n.ID, part
		}
	}
	anon, _ := window.SumBytes(w.AnonByNode)
	need := max(w.CPU.Or(0), min(w.Quota.Or(0), float64(l.mayRunOn(w, l.Machine.NodesWithCPUs()).Len())))
	var out set.NodeSet
	cpus, memory := 0.0, unit.Bytes(0)
	for _, id := range l.Machine.Nearest(start) {
		i, _ := l.index(id)
		if !l.mayLive(w, i) {
			continue
		}
		out = out.Union(l.nodeSet(id))
		cpus, memory = cpus+float64(l.mayRunOn(w, l.nodeSet(id)).Len()), memory+l.total(i).Or(0)
		if cpus >= need && memory >= anon {
			return out
		}
	}
	return set.NodeSet{}
}
