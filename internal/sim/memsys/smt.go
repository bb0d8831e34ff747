// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// sameShare is how much the share of a core may change and still count as the same.
const sameShare = 1e-6

// share is what siblings leave of a core (as in lab/plugin/smt.c):
//
//  1. Linux gives threads a core of their own first (select_idle_core in
//     kernel/sched/fair.c), so CPUs have busy siblings once all cores are busy.
//  2. An instruction takes 1 / (1 − the siblings' issue rate) cycles, at most as many
//     as the core has threads.
//  3. They share its L2, and its buffers for outstanding lines (overlap.go).
func (s *Solver) share() {
	threads := float64(s.sys.Threads)
	if threads <= 1 {
		return
	}
	for i := range s.domains {
		d := &s.domains[i]
		d.siblings, d.byBusy = siblings(d.busy, d.cores, threads)
		busy := 1 + d.siblings
		again := false
		for _, j := range d.loads {
			l := &s.loads[j]
			l.stretchBy(d, threads)
			if math.Abs(busy-l.threadsOfCore) > sameShare*busy {
				s.split(l, busy)
				again = true
			}
		}
		if again {
			s.fill(i)
			d.stay = max(d.stay, d.least())
		}
	}
}

// siblings is number 1: how many busy siblings a busy CPU has on average, and the
// derivative.
func siblings(busy, cores, threads float64) (n, slope float64) {
	if busy <= cores || cores <= 0 {
		return 0, 0
	}
	if busy >= cores*threads {
		return threads - 1, 0
	}
	each := busy / cores
	level := min(math.Floor(each), threads-1)
	rest := each - level // cores with one more
	n = (rest*(level+1)*level + (1-rest)*level*(level-1)) / each
	// The sum is level (level - 1) + 2 level rest.
	return n, (2*level - n) / each / cores
}

// stretchBy is number 2, on average. A CPU is not its own sibling: it is left out of the
// average, in so far as other loads make up for it.
func (l *load) stretchBy(d *domain, threads float64) {
	l.stretch, l.byBusy, l.byIssued = 1, 0, 0
	used := l.rate * l.cycles
	own := min(1, used, max(0, d.busy-used))
	others := d.busy - own
	if d.siblings <= 0 || others <= 1e-9 {
		return
	}
	rate := max(0, d.issued-own*l.issue/l.cycles) / others
	busy, each := min(1, d.siblings), max(1, d.siblings)
	var byBusy float64 // derivative with respect to busy
	if d.siblings < 1 {
		byBusy = d.byBusy
	}
	if rate*each >= 1-1/threads {
		l.stretch = 1 + busy*(threads-1)
		l.byBusy = byBusy * (threads - 1)
		return
	}
	cost := 1 / (1 - rate*each)
	l.stretch = 1 + busy*(cost-1)
	byRate := busy * cost * cost
	l.byIssued = byRate * each / others
	l.byBusy = byBusy*(cost-1) - byRate*each*rate/others
	if d.siblings >= 1 {
		l.byBusy += byRate * rate * d.byBusy
	}
}
