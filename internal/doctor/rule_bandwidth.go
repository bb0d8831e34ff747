// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"

	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// One node's memory is saturated while that of others idles.
//
//  1. How busy a controller is: counted (Traffic.Busy); else its reads × 64 B against
//     the read bandwidth of the node by HMAT, an estimate.
//  2. One is busy for Saturated or more, and another for IdleBeside of that or less.
//  3. Cost: the time that the workloads on the node's memory would save, by their share
//     of pages there, if half of the traffic went to the idle node (spreading); at most
//     their stall time. It is the cost model of Pays.
func bandwidthSaturated(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	busy := make([]unit.Value[unit.Ratio], len(s.Machine.Nodes))
	known := 0
	for i, n := range s.Machine.Nodes { // 1
		busy[i] = l.controllerBusy(i)
		if busy[i].Known() {
			known++
		} else if l.total(i).Or(1) > 0 {
			skipped = append(skipped, skip("how busy its memory is is unknown: "+because(busy[i]), nodeName(n.ID)))
		}
	}
	if known < 2 {
		return nil, skipped
	}
	for i := range busy { // 2
		hot, ok := busy[i].Get()
		if !ok || float64(hot) < c.Saturated {
			continue
		}
		if idle := l.idleBeside(i, busy); idle >= 0 {
			found = append(found, l.saturatedFinding(i, idle, busy))
		}
	}
	return found, skipped
}

func (l view) controllerBusy(i int) unit.Value[unit.Ratio] {
	t := l.mem(i).Traffic
	if t.Busy.Known() {
		return t.Busy
	}
	lines, from, ok := served(t)
	if !ok {
		return unit.UnknownValue[unit.Ratio](orElse(t.Busy.From, because(t.Reads)))
	}
	for _, a := range l.Machine.Nodes[i].Access {
		width, ok := a.ReadBandwidth.Get()
		if ok && width > 0 && l.Length > 0 {
			part := float64(lines) * window.LineBytes / l.Length.Seconds() / float64(width)
			return unit.Estimated(unit.Ratio(min(1, part)), from+" × 64 B / HMAT bandwidth")
		}
	}
	return unit.UnknownValue[unit.Ratio]("its reads are counted, but the firmware has no bandwidth of it")
}

// served are the lines that went over the channels, reads and, where they are counted,
// writes.
func served(t snapshot.Traffic) (lines uint64, from string, ok bool) {
	if all, ok := t.All.Get(); ok {
		return all, t.All.From, true
	}
	reads, ok := t.Reads.Get()
	if writes, both := t.Writes.Get(); ok && both {
		return reads + writes, "(" + t.Reads.From + " + " + t.Writes.From + ")", true
	}
	return reads, t.Reads.From, ok
}

// idleBeside is the nearest node with memory that idles, of several the one that idles
// most; -1 if none does.
func (l view) idleBeside(i int, busy []unit.Value[unit.Ratio]) int {
	hot := float64(busy[i].Or(0))
	near := l.nearest(l.id(i), func(j int) bool {
		b, ok := busy[j].Get()
		return ok && float64(b) <= l.c.IdleBeside*hot && l.total(j).Or(1) > 0
	})
	if len(near) == 0 {
		return -1
	}
	at := func(id int) int { j, _ := l.index(id); return j }
	sortBy(near, func(id int) float64 { return float64(busy[at(id)].Or(0)) })
	return at(near[0])
}

func (l view) saturatedFinding(i, idle int, busy []unit.Value[unit.Ratio]) Finding {
	id, other := l.id(i), l.id(idle)
	users := l.users(i)
	f := Finding{
		Title:   fmt.Sprintf("Node %d's memory bandwidth is saturated (%v busy) while node %d idles", id, busy[i].V, other),
		Subject: onNode(id), Decides: true,
		Evidence: []Evidence{fact("busy", l.byNode(func(j int) string { return busy[j].V.String() }), busy[i].How, busy[i].From)},
		Cause:    "Reads of one node's memory wait for each other, local ones as much as remote ones.",
		Remedy:   "Spread the memory: interleave the largest reader over both nodes, or move one workload, memory and CPUs, to the idle node.",
	}
	f.Cost, f.draws = l.queueCost(i, float64(busy[i].Or(0)), float64(busy[idle].Or(0)), users)
	if all := l.mem(i).Traffic.All; all.Known() {
		f.Evidence = append(f.Evidence, figured("reads and writes", l.perSecond(all), "cache lines/s"))
	}
	if reads := l.mem(i).Traffic.Reads; reads.Known() {
		f.Evidence = append(f.Evidence, figured("reads", l.perSecond(reads), "cache lines/s"))
	}
	if writes := l.mem(i).Traffic.Writes; writes.Known() {
		f.Evidence = append(f.Evidence, figured("writes", l.perSecond(writes), "cache lines/s"))
	}
	for n, k := range users {
		w := l.Window.Workloads[k]
		part, _ := l.anonShares(w)
		if n < 3 {
			f.Evidence = append(f.Evidence, l.spread("private memory of "+w.ID, part, w.AnonByNode[i].How, w.AnonByNode[i].From))
		}
	}
	if len(users) > 0 {
		f.Remedy += l.spreadWins(users[0], float64(busy[i].Or(0)), float64(busy[idle].Or(0)))
	}
	var more string
	f.Commands, more, f.Afterwards = l.spreadCommands(i, idle, users)
	f.Remedy += more
	return f
}

// users are the workloads with most of their private memory on a node, ordered by CPU
// time × share, most first.
func (l view) users(i int) []int {
	type user struct {
		k int
		w float64
	}
	var all []user
	for k, w := range l.Window.Workloads {
		part, _ := l.anonShares(w)
		if part != nil && part[i] >= l.c.SharedShare && w.CPU.Or(0) >= l.c.MinCPU {
			all = append(all, user{k, w.CPU.Or(0) * part[i]})
		}
	}
	sortBy(all, func(u user) float64 { return -u.w })
	return each(all, func(u user) int { return u.k })
}

// spreadCommands move the smallest workload that may move, because that is the
// cheapest; a single workload is spread. More belongs in the remedy.
func (l view) spreadCommands(i, idle int, users []int) (commands []string, more, afterwards string) {
	id, other := l.id(i), l.id(idle)
	nodes := l.nodeSet(other)
	if len(users) == 0 {
		return []string{fmt.Sprintf("numastat -m | head -8  # use of the memory of node %d", id)}, "", onlyShow("what reads it is known and spread")
	}
	free := slices.DeleteFunc(slices.Clone(users), func(k int) bool { return !l.mayLive(l.Window.Workloads[k], idle) })
	first := l.Window.Workloads[users[0]]
	switch n := len(free); {
	case n == 0:
		return []string{"homenode why " + quote(first.ID) + remark("why it is on "+nodeName(id))}, " None of its users may use " + nodeName(other) + ": their bindings have to be changed first." + managed(first),
			onlyShow("a user of it may use " + nodeName(other))
	case len(users) > 1:
		w := l.Window.Workloads[free[n-1]]
		out := l.bind(w, l.mayRunOn(w, nodes), nodes)
		out[len(out)-1] += remark("away from " + nodeName(id))
		return out, managed(w), l.askManager(w)
	}
	p := l.firstProcess(users[0])
	if p.PID == 0 {
		return l.bind(first, set.CPUSet{}, l.nodeSet(id, other)), managed(first), orElse(l.askManager(first), "The verdict is better only once its memory is replaced: the pages that it has stay on "+nodeName(id)+".")
	}
	return []string{restartUnderNumactl(p, "--interleave="+l.nodeSet(id, other).String(), "")}, " To interleave it, stop it and start it again with the command line of " + processName(p) + " for COMMAND….", l.overruled(p)
}

// queueCost is number 3.
func (l view) queueCost(i int, full, idle float64, users []int) (unit.Value[float64], []draw) {
	var from []draw
	sum, why := 0.0, "no workload is known to use its memory"
	for _, k := range users {
		w := l.Window.Workloads[k]
		part, _ := l.anonShares(w)
		if stalled := l.stalledCPUs(w.ID); !stalled.Known() {
			why = because(stalled)
			continue
		}
		saved, _ := l.spreading(k, full, idle)
		cost := w.CPU.Or(0) * part[i] * saved
		sum, from = sum+cost, append(from, draw{account{queues, k}, cost})
	}
	if len(from) == 0 {
		return unit.UnknownValue[float64](why), nil
	}
	return unit.Estimated(sum, "what its users would save with half of it on the idle node, by the cost model"), from
}
