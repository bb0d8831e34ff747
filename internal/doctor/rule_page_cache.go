// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// Page cache fills a node (Cates, papers §5: "memory filled by page cache on one
// one node"). The kernel gives a node's memory to files down to the low watermarks.
// Then it takes new private memory from the next node instead of dropping cache
// (zone_reclaim_mode 0; get_page_from_freelist in mm/page_alloc.c).
//
//  1. Free memory is near the low watermarks (NearLow).
//  2. File pages are a good part of the node (CacheShare).
//  3. It does harm: allocations wanted here come from elsewhere, or workloads that live
//     here have private memory elsewhere.
//  4. Cost: what those workloads lose to remote memory.
func pageCacheFillsNode(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for i, n := range s.Machine.Nodes {
		file, okFile := l.file(i).Get()
		total, okTotal := l.total(i).Get()
		full, known := l.full(i)
		switch {
		case okTotal && total == 0:
			continue
		case !known || !okFile || !okTotal:
			skipped = append(skipped, skip("no free memory, page cache or watermarks of the node", nodeName(n.ID)))
			continue
		case !full || float64(file) < c.CacheShare*float64(total): // 1, 2
			continue
		}
		falls, knownFalls := l.fallsBack(i)
		hurt := l.displaced(i)
		if !falls && len(hurt) == 0 { // 3
			if !knownFalls {
				skipped = append(skipped, skip("its cache fills it, but no numa_foreign says whether that hurts", nodeName(n.ID)))
			}
			continue
		}
		found = append(found, l.cacheFinding(i, hurt))
	}
	return found, skipped
}

func (l view) cacheFinding(i int, hurt []int) Finding {
	id := l.id(i)
	total, _ := l.total(i).Get()
	file, _ := l.file(i).Get()
	f := Finding{
		Title:   fmt.Sprintf("Page cache fills node %d: %s of %v", id, render.Percent(float64(file)/float64(total)), total),
		Subject: onNode(id),
		Evidence: []Evidence{
			shown("page cache", l.file(i)), shown("free", l.free(i)), shown("low watermarks", l.mem(i).LowFree),
			figured("wanted here, taken elsewhere", l.perSecond(l.mem(i).Numastat.Foreign), "pages/s"),
		},
		Cause:    "The kernel keeps files in the node's memory until it is full, and then gives programs that run here memory of another node rather than drop what is cached.",
		Remedy:   "Take memory back from the cache on this node. The cache comes back while files are read: let what fills it read past it (O_DIRECT, POSIX_FADV_DONTNEED), or run on another node. Dropping caches drops those of every node, and what is needed is read from disk again.",
		Commands: append(l.cacheCommands(i), l.bringHome(i, hurt)...),
	}
	if len(hurt) > 0 {
		f.Remedy += " Then bring home what went elsewhere: a page stays on the node that it was given on."
	}
	f.Cost, f.draws = l.lostOf(hurt...) // 4
	for _, k := range hurt {
		w := l.Window.Workloads[k]
		part, _ := l.anonShares(w)
		f.Evidence = append(f.Evidence, l.spread("private memory of "+w.ID, part, w.AnonByNode[i].How, w.AnonByNode[i].From))
	}
	return f
}

func (l view) cacheCommands(i int) []string {
	total, _ := l.total(i).Get()
	free, _ := l.free(i).Get()
	file, _ := l.file(i).Get()
	need := min(file, max(unit.MiB, unit.Bytes(l.c.FreeShare*float64(total))-free))
	out := []string{fmt.Sprintf(`echo "%d swappiness=0" > /sys/devices/system/node/node%d/reclaim  # Linux 6.17 and later`, need, l.id(i))}
	if k := l.cacheHolder(i); k >= 0 && l.memoryV2() {
		id := l.Window.Workloads[k].ID
		out = append(out, "echo "+strconv.FormatInt(int64(need), 10)+" > "+cgroupFile(l.Cgroups.Memory, id, "memory.reclaim")+"  # cgroup v2, Linux 5.19 and later")
	}
	return append(out, "sync; echo 1 > /proc/sys/vm/drop_caches")
}

// mostHome is the number of workloads that the commands bring home: the first ones are
// shown, the others are alike.
const mostHome = 3

// bringHome moves to a node the memory that its workloads have elsewhere.
func (l view) bringHome(i int, hurt []int) (out []string) {
	for _, k := range hurt[:min(len(hurt), mostHome)] {
		out = append(out, fmt.Sprintf("homenode migrate --cgroup %s --to %d", quote(l.Window.Workloads[k].ID), l.id(i)))
	}
	return out
}

// cacheHolder is the workload with most page cache on a node; -1 if none is known.
func (l view) cacheHolder(i int) int {
	best, most := -1, l.c.MinMemory
	for k, w := range l.Window.Workloads {
		if b, ok := at(w.FileByNode, i).Get(); ok && b > most {
			best, most = k, b
		}
	}
	return best
}

// fallsBack says that allocations wanted on a node are taken elsewhere, at a rate
// that matters.
func (l view) fallsBack(i int) (yes, known bool) {
	stat := l.mem(i).Numastat
	rate, ok1 := l.perSecond(stat.Foreign).Get()
	foreign, ok2 := stat.Foreign.Get()
	hit, ok3 := stat.Hit.Get()
	if !ok1 || !ok2 || !ok3 {
		return false, false
	}
	return rate >= l.c.FallbackPages && float64(foreign) >= l.c.FallbackShare*(float64(foreign)+float64(hit)), true
}

// displaced are the workloads that live on a node, may use its memory, and have
// private memory elsewhere.
func (l view) displaced(i int) []int {
	var out []int
	for k, w := range l.Window.Workloads {
		home, _, ok := l.home(w)
		part, _ := l.anonShares(w)
		if ok && home == i && part != nil && 1-part[i] >= l.c.AwayShare && l.mayUse(w, i) && w.CPU.Or(0) >= l.c.MinCPU {
			out = append(out, k)
		}
	}
	return out
}
