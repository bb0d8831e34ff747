// SPDX-License-Identifier: Apache-2.0

package threadworld

import "homenode/internal/sim/detmath"

// wakeCross is the probability that a wake-up whose CPU is busy searches below the LLC of
// its waker (another thread of the workload) instead of below its own: wake_affine must
// prefer the waker's CPU, and wake_wide must allow it. Estimated: sim/linux has the same.
const wakeCross = 0.002

// wake wakes up sleeping threads: threads that think, that wait at a barrier, or that have
// wake-ups of their own. select_task_rq_fair:
//
//  1. The previous CPU, if it is idle. Only threads whose CPU has others continue.
//  2. An idle CPU below its LLC, preferably of an idle core (select_idle_sibling:
//     select_idle_core, select_idle_cpu); rarely, below the waker's LLC, if that is not
//     farther than reclaimDistance (SD_WAKE_AFFINE).
//  3. Else the previous CPU.
//
// A thread that wakes up several times per step is placed once: the probability is that of
// any of its wake-ups.
func (w *World) wake(dt float64) {
	if !w.Config.Linux.WakePlacement {
		return
	}
	for _, wl := range w.live {
		if wl.wakeRate <= 0 || wl.Spec.Start.Pinned {
			continue
		}
		for i := range wl.threads {
			t := &wl.threads[i]
			c := &w.cpus[t.cpu]
			if len(c.threads) == 1 && c.room > 1-near {
				continue // 1
			}
			busy := min(1, c.load-t.want+1-c.room)
			if busy <= near {
				continue
			}
			w.wakeUp(t, wl.wakeRate*dt*busy)
		}
	}
}

// wakeUp is numbers 2 and 3, after this many wake-ups that found the CPU busy.
func (w *World) wakeUp(t *thread, times float64) {
	r := &t.wl.random
	x := r.Float()
	if x >= 1-detmath.Exp(-times) {
		return
	}
	below := w.cpus[t.cpu].llc
	if x < 1-detmath.Exp(-(times*wakeCross)) && len(t.wl.threads) > 1 {
		waker := &t.wl.threads[r.Below(len(t.wl.threads))]
		if w.reaches(w.cpus[t.cpu].node, w.cpus[waker.cpu].node) {
			below = w.cpus[waker.cpu].llc
		}
	}
	if c := w.idleBelow(t, below); c >= 0 {
		w.put(t, c)
	}
}

// idleBelow is an idle CPU below an LLC that a thread may use; -1: there is none. CPUs are
// tried from a random one on. The probability that each is idle is what its threads leave
// of its time.
func (w *World) idleBelow(t *thread, d int) int {
	cpus := w.llcs[d].cpus
	r := &t.wl.random
	first, found := r.Below(len(cpus)), -1
	for i := range cpus {
		k := first + i
		if k >= len(cpus) {
			k -= len(cpus)
		}
		c := cpus[k]
		idle := w.cpus[c].idle()
		if c == t.cpu || !has(t.mask, c) || idle <= near {
			continue
		}
		if idle < 1-near && r.Float() >= idle {
			continue
		}
		if w.coreLoad(c) <= near {
			return c
		}
		if found < 0 {
			found = c
		}
	}
	return found
}
