// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"time"
)

// loadBalance is load_balance of a group's CPU at a level, with the busiest other group.
//
//  1. An idle CPU of the group does it, if one is idle now (should_we_balance); else it
//     happens busyFactor times less often.
//  2. The busiest group is, among groups with more threads than CPUs, the one with most
//     threads per CPU; else a group with a CPU that has more than it can do
//     (group_imbalanced); else the one with the fewest idle CPUs (update_sd_pick_busiest).
//  3. Finding threads that cannot be moved is a failure. Failures allow moving threads
//     that exceed the imbalance, that NUMA balancing wants where they are, or that run.
//
// After a turn that moves something, the next comes after min_interval; after others, after
// max_interval.
func (w *World) loadBalance(v *level, at time.Duration) {
	w.tally()
	local := w.crowdOf(v.local)
	every := idleEvery * time.Duration(v.cpus)
	v.next = at + w.jitter(2*every)
	idle := w.anyIdle(&local) // 1
	if !idle {
		if at < v.busy {
			return
		}
		v.busy = at + w.jitter(2*every*busyFactor)
	}
	best := w.busiestGroup(v)
	if best < 0 {
		v.failed = 0
		return
	}
	busy := w.crowdOf(v.groups[best])
	look := w.balanceBusy
	if idle {
		look = w.balanceIdle
	}
	if look(v, best, &local, &busy) {
		v.failed = 0
		v.next = at + w.jitter(every)
		if !idle {
			v.busy = at + w.jitter(every*busyFactor)
		}
		w.tally()
	}
}

// newlyIdle lets all levels balance at once: a CPU has lost its last thread
// (newidle_balance).
func (w *World) newlyIdle(n int) {
	for _, i := range w.nodes[n].levels {
		w.levels[i].next = w.Now()
	}
}

// anyIdle draws whether a CPU of a group is idle now.
func (w *World) anyIdle(x *crowd) bool {
	return x.idle >= 1 || x.idle > near && w.random.Float() < x.idle
}

func (w *World) crowdOf(llcs []int) (all crowd) {
	for _, d := range llcs {
		all.merge(&w.llcs[d].crowd)
	}
	return all
}

// overloaded is group_is_overloaded.
func (x *crowd) overloaded() bool { return x.load > x.size+crowded }

// busiestGroup is number 2 of looks. Ties go to the nearest, then to chance. -1: no group
// has anything to do.
func (w *World) busiestGroup(v *level) int {
	best := nothing
	for k, g := range v.groups {
		x := w.crowdOf(g)
		if x.load <= near {
			continue
		}
		rank := -x.idle // 2
		switch {
		case x.overloaded():
			rank = 1 + x.load/x.size
		case x.queue > 0:
			rank = 1
		}
		best.offer(k, rank, 0, &w.random)
	}
	return best.at
}

// balanceIdle is calculate_imbalance and detach_tasks for a group that has an idle CPU.
//
//  1. From a group with more than it can do, waiting threads of one of its CPUs come, as
//     many as there is time for here (migrate_util).
//  2. Else groups balance: half of the present difference of idle CPUs moves, if that is 2
//     or more; where their children are not nodes, the difference of threads
//     (sibling_imbalance). Between nodes few threads may stay together
//     (adjust_numa_imbalance). Waiting threads come; a running one comes after as many
//     failures as need_active_balance requires.
func (w *World) balanceIdle(v *level, best int, local, busy *crowd) bool {
	if busy.overloaded() || busy.queue > 0 { // 1
		n := local.idle
		if !busy.overloaded() {
			n = 1
		}
		if w.pullWaiting(v, best, n) {
			return true
		}
		v.failed++
		return false
	}
	n := w.difference(v, local, busy) // 2
	if n < 2 || v.numa() && tolerated(n, local.load+1, v.together) {
		v.failed = 0
		return false
	}
	if w.pullWaiting(v, best, math.Floor(n/2)) {
		return true
	}
	if v.failed++; v.failed > v.tries+2 {
		v.failed = v.tries + 1
		if w.pushRunning(v, best) {
			w.tally()
		}
	}
	return false
}

// difference is the present difference of two groups, in whole threads or CPUs. For groups
// of unequal sizes it compares shares, as sibling_imbalance does for threads. The kernel
// counts idle CPUs, which would draw threads to the larger span for ever.
func (w *World) difference(v *level, local, busy *crowd) float64 {
	less, more, vary := busy.idle, local.idle, local.varyIdle+busy.varyIdle
	if v.sibling {
		less, more, vary = local.load, busy.load, busy.vary+local.vary
	}
	n := more - less
	if local.size != busy.size {
		a, b := local.size, busy.size
		if v.sibling {
			a, b = b, a
		}
		n = 2 * (b*more - a*less) / (a + b)
	}
	if vary > few {
		n += math.Sqrt(vary) * w.random.Normal()
	}
	return math.Floor(n + 0.5)
}

// tolerated is adjust_numa_imbalance: few threads, up to imb_numa_nr, may stay together.
func tolerated(difference, running, together float64) bool {
	return running <= together && difference <= fewTogether
}

// pullWaiting takes threads of this many CPUs' worth from a CPU of a group: the CPU with
// the most to do among those where a thread waits now. It takes at least one, if there is
// one.
func (w *World) pullWaiting(v *level, best int, most float64) bool {
	src := w.waiting(v.groups[best])
	moved := false
	for len(src) > 0 && !moved {
		k := w.busiest(src)
		for from := w.cpus[src[k]].load; len(w.cpus[src[k]].threads) > 1 && most > near; {
			t, to := w.pullTo(v, src[k], true)
			if t == nil || moved && t.want > most+near {
				break
			}
			most -= t.want
			w.put(t, to)
			if moved = true; w.cpus[src[k]].load < from-1 {
				break
			}
		}
		src = append(src[:k], src[k+1:]...)
	}
	return moved
}

// waiting lists the CPUs of a group where a thread waits now.
func (w *World) waiting(group []int) []int {
	src := w.room.some[:0]
	for _, d := range group {
		if w.llcs[d].waits <= near {
			continue
		}
		for _, i := range w.llcs[d].cpus {
			if p := w.cpus[i].waits; p > near && (p >= 1 || w.random.Float() < p) {
				src = append(src, i)
			}
		}
	}
	w.room.some = src
	return src
}

// pullTo picks a thread of a CPU that may come to the balancing group, and one of the
// group's CPUs, of the LLC with most time.
func (w *World) pullTo(v *level, from int, idle bool) (*thread, int) {
	for _, d := range w.byRoom(v.dest) {
		if t, to := w.movableTo(from, w.llcs[d].cpus, idle, v.failed > v.tries); t != nil {
			return t, to
		}
	}
	return nil, -1
}

// byRoom orders LLCs by free time, most first; of equal ones, from a random one on.
func (w *World) byRoom(llcs []int) []int {
	if len(llcs) == 1 {
		return llcs
	}
	w.tally()
	all := w.room.order[:0]
	first := w.random.Below(len(llcs))
	for i := range llcs {
		d := llcs[(first+i)%len(llcs)]
		all = append(all, d)
		for k := len(all) - 1; k > 0 && w.llcs[all[k-1]].room() < w.llcs[d].room()-near; k-- {
			all[k-1], all[k] = all[k], all[k-1]
		}
	}
	w.room.order = all
	return all
}

// room is what CPUs have left; it is negative if they lack time.
func (x *crowd) room() float64 {
	if x.size == 0 {
		return math.Inf(-1)
	}
	return x.idle - max(0, x.load/x.size-1)
}

// pushRunning is active_load_balance_cpu_stop: a thread of a busy CPU of the group comes,
// though it is running.
func (w *World) pushRunning(v *level, best int) bool {
	some := w.room.some[:0]
	for _, d := range v.groups[best] {
		for _, i := range w.llcs[d].cpus {
			if load := w.cpus[i].load; load > near && (load >= 1 || w.random.Float() < load) {
				some = append(some, i)
			}
		}
	}
	w.room.some = some
	for len(some) > 0 {
		k := w.random.Below(len(some))
		for _, d := range w.byRoom(v.dest) {
			if w.moveRunning(some[k], w.llcs[d].cpus) {
				return true
			}
		}
		some = append(some[:k], some[k+1:]...)
	}
	return false
}

// balanceBusy is for a group without an idle CPU: the busiest group must have more than it can
// do. What moves is the smaller of two amounts: what the busiest is above the mean, and
// what this group is below it. A thread larger than that moves after enough failures
// (detach_tasks: load >> nr_balance_failed).
func (w *World) balanceBusy(v *level, best int, local, busy *crowd) bool {
	here, there := local.load/local.size, busy.load/busy.size
	most := 1.0
	if busy.overloaded() {
		mean := w.meanLoad(v, local)
		if here >= there || here >= mean || local.overloaded() && there <= (1+imbalance)*here {
			v.failed = 0
			return false
		}
		most = min((there-mean)*busy.size, (mean-here)*local.size)
	} else if busy.queue == 0 || local.overloaded() {
		v.failed = 0
		return false
	}
	src := w.waiting(v.groups[best])
	for len(src) > 0 {
		k := w.busiest(src)
		t, to := w.pullTo(v, src[k], false)
		if t != nil && math.Ldexp(t.want, -v.failed) <= most+near {
			w.put(t, to)
			return true
		}
		src = append(src[:k], src[k+1:]...)
	}
	v.failed++
	return false
}

// meanLoad is the load per CPU over all groups of a level.
func (w *World) meanLoad(v *level, local *crowd) float64 {
	all := *local
	for _, g := range v.groups {
		x := w.crowdOf(g)
		all.merge(&x)
	}
	return all.load / all.size
}
