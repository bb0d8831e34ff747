// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// What limits a load to a part of its LLC and of the memory bandwidth (CAT and MBA, as
// resctrl sets them). It does less than the hardware, and is simpler:
//
//  1. A capped load holds as much of its domain's LLC as it would without a cap, but no
//     more than its share. Others may hold all of it: its ways are not taken from them, as in
//     resctrl, where the default group keeps every way. Two effects are left out: competition
//     with others in those ways, and that fewer ways mean more conflicts.
//  2. So its lines stay for T, or until they fill its share, whichever is shorter. What it
//     holds depends on T × rate alone, so the latter limit is one number X at any rate.
//  3. A throttled load's lines, read and written back, are at most its share of what its
//     node's controllers serve, by the domain's part of the node's CPUs. MBA delays each
//     core's requests, and so does the model: each of its CPUs gets its part of that, and
//     waits for the rest. An operation takes at least the cycles that follow from this.

// isolated is this part of a load.
type isolated struct {
	cache     float64 // lines that it may hold; 0: no limit
	over      bool    // it has more than that
	mostStay  float64 // X of number 2
	capped    bool    // X is less than T × rate
	limit     float64 // lines per cycle; 0: no limit
	throttled bool
}

func (s *Solver) layIsolated(l *load, from *Load) {
	d := &s.domains[l.domain]
	if from.Cache > 0 {
		l.cache = d.lines * min(1, from.Cache)
	}
	node := &s.sys.Nodes[l.node]
	if from.Bandwidth > 0 && node.Cycles > 0 && node.CPUs > 0 {
		l.limit = min(1, from.Bandwidth) / node.Cycles * (d.cpus / node.CPUs)
	}
}

// fillCapped computes what a capped load wants of an LLC (fill), and X.
func (s *Solver) fillCapped(d *domain, l *load) {
	lines, asked := s.wantsOf(l)
	d.limited = true
	d.footprint += min(lines, l.cache)
	d.asked += l.rate * asked
	if l.over = lines > l.cache; l.over {
		l.mostStay = s.longest(l, asked)
	}
}

// wantsOf is the lines of its regions and adds that leave its cores' caches, and how many
// of them an operation requests.
func (s *Solver) wantsOf(l *load) (lines, asked float64) {
	for _, r := range s.regions[l.first:l.last] {
		if r.reads > 0 {
			lines += r.lines
			asked += r.reads
		}
	}
	if l.adding.counted {
		lines += l.addLines
		asked += l.adds * l.adding.fetch
	}
	return lines, asked
}

// longest is number 2's X, by bisection, as what the load holds only grows with it.
func (s *Solver) longest(l *load, asked float64) float64 {
	low := l.cache / max(asked, 1e-300) // as if all missed
	high := 2 * low
	for range 200 {
		if s.holds(l, high) >= l.cache {
			break
		}
		low, high = high, 2*high
	}
	for high > low*(1+1e-12) {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			break
		}
		if s.holds(l, mid) >= l.cache {
			high = mid
		} else {
			low = mid
		}
	}
	return low
}

// holds is the lines of an LLC that a load holds if each stays for this many operations.
func (s *Solver) holds(l *load, stay float64) (lines float64) {
	for _, r := range s.regions[l.first:l.last] {
		if r.reads > 0 {
			_, part, _, _ := inLLC(true, r.laps, stay*r.reads/r.lines)
			lines += r.lines * part
		}
	}
	if l.adding.counted {
		_, part, _, _ := inLLC(true, false, stay*l.adds*l.adding.fetch/l.addLines)
		lines += l.addLines * part
	}
	return lines
}

// within is number 2: for how many operations its lines stay, whether that is limited, and
// whether its share is the limit.
func (s *Solver) within(l *load, stay float64, full bool) (float64, bool, bool) {
	if l.adding.counted { // what it fetches changes from round to round
		_, asked := s.wantsOf(l)
		l.mostStay = s.longest(l, asked)
	}
	if full && !math.IsNaN(stay) && stay <= l.mostStay {
		return stay, true, false
	}
	return l.mostStay, true, true
}

// crowded reports that T is so long that all loads hold their shares, and the shares exceed
// the room: T must become shorter, though a little shorter changes nothing yet.
func (d *domain) crowded(byStay float64) bool {
	return d.limited && d.full && d.lines > 0 && byStay <= 0 && d.held > d.lines
}

// fix is the sums where neither T nor the rate changes them.
func (t *sums) fix() {
	t.lessReads, t.lessExposed, t.lessBack, t.moreHeld, t.lessAdded = 0, 0, 0, 0, 0
}

// throttle is number 3.
func (l *load) throttle(cycles float64, t *sums) float64 {
	least := l.cpus * (t.reads + t.back + l.adding.reads + l.adding.back) / l.limit
	if least <= cycles {
		return cycles
	}
	l.throttled = true
	return least
}
