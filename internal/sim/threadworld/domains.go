// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"slices"
	"time"
)

const (
	// reclaimDistance is node_reclaim_distance (RECLAIM_DISTANCE, 30): on domains with
	// nodes farther apart sd_init clears SD_BALANCE_EXEC, SD_BALANCE_FORK and
	// SD_WAKE_AFFINE. (EPYC's kernel has 32; none of these machines is one.)
	reclaimDistance = 30
	// remoteDistance is REMOTE_DISTANCE, used where the firmware gives no distance.
	remoteDistance = 20
	// triesNUMA and triesNode are cache_nice_tries (sd_init).
	triesNUMA, triesNode = 2, 1
)

// level is a scheduling domain as one of its groups sees it: should_we_balance lets one CPU
// of a group balance for all.
type level struct {
	distance int           // of its farthest node; 0: LLCs of one node
	cpus     float64       // of its span
	local    []int         // LLCs of the group that balances
	dest     []int         // those of them whose CPUs balance (group_balance_mask)
	groups   [][]int       // the other groups, nearest first; they may overlap
	together float64       // imb_numa_nr
	sibling  bool          // groups balance by threads, not by idle CPUs (SD_PREFER_SIBLING of the child)
	tries    int           // cache_nice_tries
	swaps    float64       // swaps.go
	failed   int           // nr_balance_failed
	next     time.Duration // when an idle CPU balances
	busy     time.Duration // when a busy one does
}

func (v *level) numa() bool { return v.distance > 0 }

// layDomains makes the levels.
//
//  1. The LLCs of a node, where it has several (the PKG level).
//  2. A level of each distance that there is, if it has more nodes than the one below
//     (sched_init_numa; sd_parent_degenerate). Its span are the nodes up to there, its
//     groups are the spans of the level below.
//
// Where spans of a level overlap, so do groups, and each node balances for itself
// (build_overlap_sched_groups).
func (w *World) layDomains() {
	for d := range w.llcs {
		w.layNode(d) // 1
	}
	w.layNUMA() // 2
	w.laySwaps()
}

func (w *World) layNode(d int) {
	x := &w.nodes[w.llcs[d].node]
	if len(x.llcs) < 2 || len(w.llcs[d].cpus) == 0 {
		return
	}
	v := level{cpus: float64(len(x.cpus)), local: []int{d}, dest: []int{d}, sibling: true, tries: triesNode}
	for _, o := range x.llcs {
		if o != d && len(w.llcs[o].cpus) > 0 {
			v.groups = append(v.groups, []int{o})
		}
	}
	w.levels = append(w.levels, v)
}

// distance is the distance between nodes, by index.
func (w *World) distance(a, b int) int {
	if a == b {
		return 0
	}
	return max(1, w.Config.Machine.Distance(w.nodes[a].id, w.nodes[b].id).Or(remoteDistance))
}

// span is the nodes with CPUs up to a distance, in order.
func (w *World) span(n, distance int) (all []int) {
	for k := range w.nodes {
		if len(w.nodes[k].cpus) > 0 && w.distance(n, k) <= distance {
			all = append(all, k)
		}
	}
	return all
}

func (w *World) layNUMA() {
	var distances []int
	for a := range w.nodes {
		for b := range w.nodes {
			if d := w.distance(a, b); d > 0 && !slices.Contains(distances, d) {
				distances = append(distances, d)
			}
		}
	}
	slices.Sort(distances)
	for n := range w.nodes {
		if len(w.nodes[n].cpus) == 0 {
			continue
		}
		below, first := 0, 0.0
		for _, d := range distances {
			if nodes := w.span(n, d); len(nodes) > len(w.span(n, below)) {
				v := w.levelOf(n, d, below, nodes)
				if first == 0 {
					first, v.sibling = v.cpus, true // the child is no NUMA level, and prefers siblings
				}
				v.together = w.together(n, v.cpus/first)
				w.own(n, v)
			}
			below = d
		}
	}
}

// together is imb_numa_nr: an eighth of a node's CPUs; where it has several LLCs, one
// thread each; for a larger span, that many times more (build_sched_domains).
func (w *World) together(n int, factor float64) float64 {
	x := &w.nodes[n]
	threads := len(x.cpus) / 8
	if len(x.llcs) > 1 {
		threads = len(x.llcs)
	}
	return float64(max(1, threads) * max(1, int(factor)))
}

// levelOf makes a level of a node whose child reaches up to distance below.
func (w *World) levelOf(n, distance, below int, nodes []int) level {
	v := level{distance: distance, local: w.llcsOf(w.span(n, below)), tries: triesNUMA}
	left := slices.DeleteFunc(slices.Clone(nodes), func(k int) bool { return w.distance(n, k) <= below })
	slices.SortStableFunc(left, func(a, b int) int { return w.distance(n, a) - w.distance(n, b) })
	for _, k := range nodes {
		v.cpus += float64(len(w.nodes[k].cpus))
	}
	for len(left) > 0 {
		var group []int
		for _, k := range nodes {
			if w.distance(left[0], k) <= below {
				group = append(group, k)
			}
		}
		left = slices.DeleteFunc(left, func(k int) bool { return slices.Contains(group, k) })
		v.groups = append(v.groups, w.llcsOf(group))
	}
	return v
}

func (w *World) llcsOf(nodes []int) (all []int) {
	for _, k := range nodes {
		all = append(all, w.nodes[k].llcs...)
	}
	return all
}

// own gives a node a level, shared with another node of the same group if that has it.
func (w *World) own(n int, v level) {
	at := slices.IndexFunc(w.levels, func(o level) bool {
		return o.distance == v.distance && o.cpus == v.cpus && slices.Equal(o.local, v.local)
	})
	if at < 0 {
		at = len(w.levels)
		w.levels = append(w.levels, v)
	}
	w.levels[at].dest = append(w.levels[at].dest, w.nodes[n].llcs...)
	w.nodes[n].levels = append(w.nodes[n].levels, at)
}

// reaches reports whether a wake-up may go from one node to another (SD_WAKE_AFFINE).
func (w *World) reaches(a, b int) bool { return w.distance(a, b) <= reclaimDistance }
