// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// Allocations fall over to another node (Cates, papers §5). nodeN/numastat counts them:
// numa_foreign on the node that was wanted, numa_miss on the node that the page came
// from (Documentation/admin-guide/numastat.rst).
//
//  1. numa_foreign rises at FallbackPages, and is FallbackShare of what was wanted.
//  2. What takes the node's memory: its largest kind, and the workload that has most of
//     its memory here while it runs elsewhere ("stranger").
//  3. Cost: what workloads that live here and have memory elsewhere lose.
func allocationFallback(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for i, n := range s.Machine.Nodes {
		if total, ok := l.total(i).Get(); ok && total == 0 {
			continue // memoryless: it always falls back
		}
		yes, known := l.fallsBack(i) // 1
		if !known {
			skipped = append(skipped, skip("no numa_foreign and numa_hit of the node", nodeName(n.ID)))
		}
		if yes {
			found = append(found, l.fallbackFinding(i))
		}
	}
	return found, skipped
}

func (l view) fallbackFinding(i int) Finding {
	id, stat := l.id(i), l.mem(i).Numastat
	f := Finding{
		Title:   fmt.Sprintf("Allocations for node %d fall to other nodes", id),
		Subject: onNode(id),
		Evidence: []Evidence{
			figured("wanted here, taken elsewhere (numa_foreign)", l.perSecond(stat.Foreign), "pages/s"),
			figured("wanted and taken here (numa_hit)", l.perSecond(stat.Hit), "pages/s"),
			fact("taken instead (numa_miss)", l.byNode(func(j int) string {
				if rate, ok := l.perSecond(l.mem(j).Numastat.Miss).Get(); ok && j != i && rate > 0 {
					return render.Amount(rate) + " pages/s"
				}
				return ""
			}), stat.Miss.How, stat.Miss.From),
			shown("free", l.free(i)),
		},
		Cause:  "Node " + strconv.Itoa(id) + " has no free memory when a program that runs there asks for some." + l.largest(i),
		Remedy: "Make room on the node: move away the memory of workloads that run elsewhere, give the cache less, or put the workload where there is memory.",
	}
	if f.Evidence[2].Value == "" {
		f.Evidence = append(f.Evidence[:2], f.Evidence[3])
	}
	f.Evidence = append(f.Evidence, l.place(func(p snapshot.Place) bool { return at(p.Remote, i) > 0 })...)
	hurt := l.displaced(i)
	f.Cost, f.draws = l.lostOf(hurt...) // 3
	var whose string
	f.Commands, whose, f.Afterwards = l.fallbackCommands(i)
	f.Commands = append(f.Commands, l.bringHome(i, hurt)...)
	f.Remedy += whose
	if len(hurt) > 0 {
		f.Remedy += " Then bring home what went elsewhere."
	}
	return f
}

// fallbackCommands move the stranger to a node that it may use; whose names the manager
// if its cgroup is written.
func (l view) fallbackCommands(i int) (commands []string, whose, afterwards string) {
	id := l.id(i)
	if k := l.stranger(i); k >= 0 { // 2
		w := l.Window.Workloads[k]
		others := l.nearest(id, func(j int) bool { return l.roomy(j) && l.mayUse(w, j) })
		switch pids := l.group(k).PIDs; {
		case len(others) > 0 && len(pids) > 0:
			return movePages(pids, l.nodeSet(id), l.nodeSet(others[0]), 3), "", ""
		case len(others) > 0:
			out := l.bind(w, set.CPUSet{}, l.nodeSet(others[0]))
			out[len(out)-1] += remark("away from " + nodeName(id))
			return out, managed(w), l.askManager(w)
		}
	}
	show := fmt.Sprintf("cat /sys/devices/system/node/node%d/meminfo", id)
	if !l.cacheIsEnough(i) {
		return []string{show}, "", onlyShow("the programs of " + nodeName(id) + " use less memory there: it has hardly any page cache to give back")
	}
	return append(l.cacheCommands(i), show), "", ""
}

// cacheIsEnough says that the node is no longer full without its page cache; true also
// when that is unknown.
func (l view) cacheIsEnough(i int) bool {
	free, ok1 := l.free(i).Get()
	file, ok2 := l.file(i).Get()
	low, ok3 := l.mem(i).LowFree.Get()
	return !ok1 || !ok2 || !ok3 || float64(free+file) > l.c.NearLow*float64(low)+float64(l.c.MinMemory)
}

// largest is a sentence about the largest use of a node's memory.
func (l view) largest(i int) string {
	k := l.mem(i).Memory
	best, most := "", unit.Bytes(0)
	for _, kind := range []struct {
		name string
		v    unit.Value[unit.Bytes]
	}{{"private memory of processes", k.Anon}, {"page cache", k.File}, {"shared memory", k.Shmem}, {"the kernel's objects", k.Slab}, {"huge-page pools", k.Huge}} {
		if b, ok := kind.v.Get(); ok && b > most {
			best, most = kind.name, b
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Most of it is %s: %v.", best, most)
}

// stranger is the workload with most private memory on a node of those that hardly run
// there and are not bound to it; -1 if there is none.
func (l view) stranger(i int) int {
	best, most := -1, l.c.MinMemory
	for k, w := range l.Window.Workloads {
		cpu := l.cpuShares(w)
		b, ok := at(w.AnonByNode, i).Get()
		bound := !w.Binding.Mems.IsEmpty() && w.Binding.Mems.Equal(l.nodeSet(l.id(i)))
		if ok && cpu != nil && cpu[i] < l.c.SpreadShare && !bound && b > most {
			best, most = k, b
		}
	}
	return best
}
