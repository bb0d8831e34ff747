// SPDX-License-Identifier: Apache-2.0

package threadworld

import "time"

const (
	// swapRate is how often per second a thread of a busy machine is placed anew for no
	// lasting reason, among the nodes of its nearest domain of nodes, its own included:
	// some kernel work ran for a moment, and was a thread too many. Estimated: sim/linux
	// has the same, for all nodes alike. Decision 0021 has the results with half and twice
	// as much, and with none.
	swapRate = 1.0 / 30
	// swapLook is the longest time until the rate is computed again.
	swapLook = time.Second
)

// laySwaps computes how much rarer swaps are at farther levels: by the square of their
// CPUs. Farther levels balance that much less often (sd_init: min_interval), and one thread
// is that much less of a group's load (imbalance_pct, imb_numa_nr). Estimated. Swapping two
// threads below one LLC would change nothing, and is left out.
func (w *World) laySwaps() {
	for n := range w.nodes {
		for k, i := range w.nodes[n].levels {
			v := &w.levels[i]
			share := w.levels[w.nodes[n].levels[0]].cpus / v.cpus
			if v.swaps = share * share; k == 0 {
				v.swaps = 1
			}
			w.nodes[n].swaps += v.swaps
		}
		w.swaps = max(w.swaps, w.nodes[n].swaps)
	}
}

// swapSometimes swaps a thread with one of a random CPU. Both CPUs must be busy, so on a
// machine with idle CPUs it is rare. A swap places two threads anew.
func (w *World) swapSometimes(at time.Duration) {
	for w.swapAt < at {
		due := w.swapDue && w.swapAt > 0
		busy, threads := 0.0, 0
		for _, wl := range w.live {
			threads += len(wl.threads)
			for i := range wl.threads {
				busy += wl.threads[i].got
			}
		}
		busy /= float64(len(w.cpus))
		if due {
			w.swapAny(threads)
		}
		rate := float64(threads) * w.swapRate * w.swaps * busy * busy / 2
		wait := swapLook
		if w.swapDue = false; rate > 0 {
			if x := w.random.Exponential() / rate; x < swapLook.Seconds() {
				wait, w.swapDue = time.Duration(x*1e9), true
			}
		}
		w.swapAt += max(wait, 1)
	}
}

// swapAny is one swap of a random thread, if both threads may move.
func (w *World) swapAny(threads int) {
	if threads == 0 {
		return
	}
	k := w.random.Below(threads)
	for _, wl := range w.live {
		if k >= len(wl.threads) {
			k -= len(wl.threads)
			continue
		}
		t := &wl.threads[k]
		if o := w.partner(t); o != nil {
			a, b := t.cpu, o.cpu
			w.put(t, b)
			w.put(o, a)
		}
		return
	}
}

// partner is the thread to swap with: of a level by its rate, of a node of that level by
// its CPUs. nil: there is none, or one of them may not move.
func (w *World) partner(t *thread) *thread {
	n := w.cpus[t.cpu].node
	x := w.random.Float() * w.swaps
	for _, i := range w.nodes[n].levels {
		v := &w.levels[i]
		if x -= v.swaps; x >= 0 {
			continue
		}
		c := w.busyCPU(v)
		if c < 0 || c == t.cpu {
			return nil
		}
		o := w.cpus[c].threads[w.random.Below(len(w.cpus[c].threads))]
		if !has(t.mask, o.cpu) || !has(o.mask, t.cpu) || w.tiedBy(t, o) || w.tiedBy(o, t) {
			return nil
		}
		return o
	}
	return nil
}

// busyTries is how many tries find a CPU with a thread, on a machine so busy that swaps
// happen.
const busyTries = 8

// busyCPU is a random CPU of a level among those with threads; -1: it found none.
func (w *World) busyCPU(v *level) int {
	for range busyTries {
		k := w.random.Below(int(v.cpus))
		for g := -1; g < len(v.groups); g++ {
			llcs := v.local
			if g >= 0 {
				llcs = v.groups[g]
			}
			for _, d := range llcs {
				if cpus := w.llcs[d].cpus; k >= len(cpus) {
					k -= len(cpus)
				} else if len(w.cpus[cpus[k]].threads) > 0 {
					return cpus[k]
				} else {
					k = int(v.cpus) // the next try
				}
			}
		}
	}
	return -1
}

// tiedBy reports that NUMA balancing wants a thread where it is, and not where the other is
// (migrate_degrades_locality: kernel work that ran for a moment has no preferred node).
func (w *World) tiedBy(t, other *thread) bool {
	return t.prefer >= 0 && t.prefer == w.cpus[t.cpu].node && t.prefer != w.cpus[other.cpu].node
}
