// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"

	"homenode/internal/sim"
)

// start places a new workload's threads.
//
//  1. Each pinned thread has a CPU; they are spread evenly over the set.
//  2. exec goes from the parent's node, which is random, to the idlest node within
//     reclaimDistance (sched_exec).
//  3. Each further thread is forked by the main one and goes to the idlest node within
//     reclaimDistance of it (select_task_rq_fair, find_idlest_group). It stays on the main
//     thread's node while few run there and others are only a little idler
//     (adjust_numa_imbalance), or where no CPU is idle, unless another node is less busy by
//     imbalance_pct.
//  4. Then it goes to the idlest LLC of the node, an idle core, an idle CPU, or the CPU
//     with the least to do (find_idlest_group_cpu). Chance decides among equals.
//
// Without load balancing threads spread evenly over the nodes: each goes to the idlest.
func (w *World) start(wl *workload) {
	w.first(wl)
	for i := range wl.threads {
		t := &wl.threads[i]
		t.want = min(1, wl.want0())
		switch {
		case wl.Spec.Start.Pinned: // 1
			w.tie(t)
			w.put(t, w.leastLoaded(t, t.mask))
		case !w.Config.Linux.LoadBalance:
			w.put(t, w.idlestCPU(t, w.anyNode(t)))
		case i == 0: // 2
			w.put(t, w.idlestCPU(t, w.newNode(t, w.parentNode(t))))
		default: // 3
			w.put(t, w.idlestCPU(t, w.newNode(t, w.cpus[wl.threads[0].cpu].node)))
		}
	}
}

// want0 is what a thread seems to want before anything has run.
func (wl *workload) want0() float64 {
	if wl.Demand.Closed {
		return max(wl.Demand.Duty, few)
	}
	return max(few, min(1, wl.Spec.Demand.Rate*wl.cycles/float64(len(wl.threads))))
}

// few: less of a CPU's time than this is next to nothing.
const few = 1e-6

// first guesses the time of an operation, in seconds.
func (w *World) first(wl *workload) {
	sum := 0.0
	for n := range w.nodes {
		sum += sim.CyclesAlone(&w.Config.System, &wl.Works[0], n)
	}
	wl.cycles = sum / float64(len(w.nodes)) / w.Config.System.Hz
}

// tie pins a thread to a CPU of its own: the set's CPUs in turn, spread over all of them
// where there are more CPUs than threads.
func (w *World) tie(t *thread) {
	ids := t.wl.CPUs.IDs()
	at := t.index % len(ids)
	if n := len(t.wl.threads); n < len(ids) {
		at = t.index * len(ids) / n
	}
	t.own = t.own.With(ids[at])
	t.pinned = true
	w.allow(t)
}

// idleOn is the number of idle CPUs among those of a node that a thread may use, the number
// it may use, and their load.
func (w *World) idleOn(t *thread, n int) (idle, cpus, load float64) {
	for _, c := range w.nodes[n].cpus {
		if has(t.mask, c) {
			cpus++
			load += w.cpus[c].load
			idle += w.cpus[c].idle()
		}
	}
	return idle, cpus, load
}

// site is a group of nodes that a new thread could go to.
type site struct {
	llcs             []int
	idle, cpus, load float64
}

// siteOf adds up the CPUs of a group that a thread may use.
func (w *World) siteOf(t *thread, llcs []int) site {
	s := site{llcs: llcs}
	for _, d := range llcs {
		for _, c := range w.llcs[d].cpus {
			if has(t.mask, c) {
				s.cpus++
				s.load += w.cpus[c].load
				s.idle += w.cpus[c].idle()
			}
		}
	}
	return s
}

// parentNode is the node of the process that starts the workload: random, more likely where
// more CPUs are idle.
func (w *World) parentNode(t *thread) int {
	all, anywhere := 0.0, 0.0
	for n := range w.nodes {
		idle, cpus, _ := w.idleOn(t, n)
		all += idle
		anywhere += cpus
	}
	x, last := t.wl.random.Float(), -1
	if all > near {
		x *= all
	} else {
		x *= anywhere
	}
	for n := range w.nodes {
		weight, cpus, _ := w.idleOn(t, n)
		if all <= near {
			weight = cpus
		}
		if weight <= 0 {
			continue
		}
		if last = n; x < weight {
			break
		}
		x -= weight
	}
	return last
}

// newNode is number 3: from the farthest domain within reclaimDistance down, the idlest
// group of each, starting at a node (sched_balance_find_dst_cpu).
func (w *World) newNode(t *thread, from int) int {
	n, size := from, math.Inf(1)
	for again := true; again; {
		again = false
		levels := w.nodes[n].levels
		for i := len(levels) - 1; i >= 0; i-- {
			v := &w.levels[levels[i]]
			if v.distance > reclaimDistance || v.cpus >= size {
				continue
			}
			size = v.cpus
			if s, ok := w.idlestGroup(t, v); ok {
				n, again = w.nodeOf(t, s), true
				break
			}
		}
	}
	return n
}

// idlestGroup is find_idlest_group: a group other than the local one, if it is better by
// enough.
func (w *World) idlestGroup(t *thread, v *level) (best site, ok bool) {
	ties := 0
	for _, g := range v.groups {
		s := w.siteOf(t, g)
		switch by := s.compare(&best); {
		case s.cpus == 0:
		case best.cpus == 0 || by > 0:
			best, ties = s, 1
		case by == 0:
			if ties++; t.wl.random.Below(ties) == 0 {
				best = s
			}
		}
	}
	local := w.siteOf(t, v.local)
	switch {
	case best.cpus == 0:
		return best, false
	case local.cpus == 0:
		return best, true
	case best.idle <= near:
		return best, local.idle <= near && local.load/local.cpus > (1+imbalance)*best.load/best.cpus
	case local.idle >= best.idle-near:
		return best, false
	}
	return best, !tolerated(best.idle-local.idle, local.load+1, v.together)
}

// compare prefers the site with more idle CPUs or, if neither has any, with less load per
// CPU.
func (s *site) compare(o *site) float64 {
	by := s.idle - o.idle
	if s.idle <= near && o.idle <= near && s.cpus > 0 && o.cpus > 0 {
		by = o.load/o.cpus - s.load/s.cpus
	}
	if math.Abs(by) <= near {
		return 0
	}
	return by
}

// nodeOf is the node of a group with the most idle CPUs, random among equals.
func (w *World) nodeOf(t *thread, s site) int {
	best, most, ties := -1, site{}, 0
	for i := range s.llcs {
		n := w.llcs[s.llcs[i]].node
		if i > 0 && n == w.llcs[s.llcs[i-1]].node {
			continue
		}
		x := w.siteOf(t, w.nodes[n].llcs)
		switch by := x.compare(&most); {
		case x.cpus == 0:
		case best < 0 || by > 0:
			best, most, ties = n, x, 1
		case by == 0:
			if ties++; t.wl.random.Below(ties) == 0 {
				best = n
			}
		}
	}
	return best
}

// anyNode is the idlest node of all, used where nothing is balanced.
func (w *World) anyNode(t *thread) int {
	var all []int
	for n := range w.nodes {
		all = append(all, w.nodes[n].llcs...)
	}
	return w.nodeOf(t, site{llcs: all})
}

const (
	// imbalance is imbalance_pct 117 (sched/topology.c, sd_init).
	imbalance = 0.17
	// fewTogether is NUMA_IMBALANCE_MIN.
	fewTogether = 2
)

// idlestCPU is number 4.
func (w *World) idlestCPU(t *thread, n int) int {
	best := nothing
	for _, d := range w.nodes[n].llcs {
		idle, any := 0.0, false
		for _, c := range w.llcs[d].cpus {
			if has(t.mask, c) {
				any = true
				idle += w.cpus[c].idle()
			}
		}
		if any {
			best.offer(d, idle, 0, &t.wl.random)
		}
	}
	clear(w.room.mask)
	for _, c := range w.llcs[best.at].cpus {
		if has(t.mask, c) {
			w.room.mask[c/64] |= 1 << (c % 64)
		}
	}
	return w.leastLoaded(t, w.room.mask)
}
