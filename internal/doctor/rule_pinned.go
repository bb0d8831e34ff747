// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"

	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// A pinned thread cannot move away from a busy CPU (Cates, papers §5).
//
//  1. A thread may run on one CPU only, although its process's node has several.
//  2. It waits: WaitShare of the time it is runnable and not running (schedstat). If
//     that is unknown: the threads that we saw use BusyCPU of its CPU, and others at
//     least WaitShare; an estimate.
//  3. Other CPUs of the node have room: FreeCPU of one is idle.
//  4. Cost: the time it waits.
func pinnedToBusyCPU(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if len(s.Processes) == 0 {
		return nil, []Skipped{skip("no process was looked at")}
	}
	load, threads := l.cpuLoad(), 0
	for _, p := range s.Processes {
		for _, t := range p.Threads {
			threads++
			cpu, ok := t.Allowed.First()
			if !ok || t.Allowed.Len() != 1 { // 1
				continue
			}
			used, okUsed := t.CPUTime.Get()
			if !okUsed && !t.Waited.Known() {
				skipped = append(skipped, skip("the CPU time of a pinned thread is unknown: "+because(t.CPUTime), strconv.Itoa(t.TID)))
				continue
			}
			waited := l.waits(t, used, load[cpu])
			if node, room := l.roomOnNode(cpu); waited.Known() && room { // 2, 3
				found = append(found, l.pinnedFinding(p, t, cpu, node, waited, load[cpu]))
			}
		}
	}
	if threads == 0 {
		skipped = append(skipped, skip("no threads were looked at"))
	}
	return found, skipped
}

// cpuLoad is CPUs' worth of time by CPU, of all threads that were looked at.
func (l view) cpuLoad() map[int]float64 {
	load := map[int]float64{}
	for _, p := range l.Processes {
		for _, t := range p.Threads {
			load[t.CPU] += t.CPUTime.Or(0)
		}
	}
	return load
}

// waits is number 2: CPUs' worth of time; unknown when the thread need not wait.
func (l view) waits(t snapshot.Thread, used, load float64) unit.Value[float64] {
	if w, ok := t.Waited.Get(); ok {
		if w < l.c.WaitShare {
			return unit.UnknownValue[float64]("it does not wait")
		}
		return t.Waited
	}
	if load < l.c.BusyCPU || load-used < l.c.WaitShare || used < l.c.MinCPU {
		return unit.UnknownValue[float64]("its CPU is not contended")
	}
	return unit.Estimated(min(load-used, 1-min(1, used)), "time of others on its CPU")
}

// roomOnNode is number 3.
func (l view) roomOnNode(cpu int) (node int, room bool) {
	node, ok := l.Machine.NodeOf(cpu)
	i, known := l.index(node)
	if !ok || !known {
		return 0, false
	}
	busy, okBusy := l.windowNode(i).CPUBusy.Get()
	cpus := float64(l.Machine.Nodes[i].CPUs.Len())
	return node, okBusy && cpus-busy >= l.c.FreeCPU
}

func (l view) pinnedFinding(p snapshot.Process, t snapshot.Thread, cpu, node int, waited unit.Value[float64], load float64) Finding {
	i, _ := l.index(node)
	cpus := l.Machine.Nodes[i].CPUs
	tid := strconv.Itoa(t.TID)
	return Finding{
		Title:   fmt.Sprintf("Thread %s (%d) of %s is pinned to CPU %d, which is busy", t.Name, t.TID, processName(p), cpu),
		Subject: Subject{Kind: SubjectThread, ID: tid, Name: t.Name, Workload: p.Workload}, Cost: waited, // 4
		Evidence: []Evidence{
			figured("waits for its CPU", waited, "CPUs"), figured("runs", t.CPUTime, "CPUs"),
			figured("its CPU is used by threads we saw", unit.Estimated(load, "where threads last ran"), "CPUs"),
			figured("busy on "+nodeName(node), l.windowNode(i).CPUBusy, fmt.Sprintf("of %d CPUs", cpus.Len())),
		},
		Cause:    "It may run on one CPU only, other threads run there too, and the scheduler may not move it to an idle CPU next to it.",
		Remedy:   "Pin it to its node, not to a CPU: its memory stays as near, and it can get out of the way.",
		Commands: []string{"taskset -cp " + orElse(cpus.String(), set.FromCPUs().String()) + " " + tid},
	}
}
