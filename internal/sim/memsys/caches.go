// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// How much of a region a cache holds.
//
//  1. A line that was brought in stays for a time T, whatever it belongs to: the cache
//     replaces at random (an LLC), or the oldest line first (an L2). So a region holds its
//     insertions × T, in proportion to its misses.
//  2. T is such that the regions together hold as much as there is room for. With room for
//     all, T is infinite and nothing misses.
//  3. Each line is requested q times per unit of time, x = qT. With random accesses it
//     misses 1/(1+x) of the time (for both kinds of replacement: Gelenbe, A unified approach
//     to the evaluation of a class of replacement algorithms, 1973). In laps, each line comes
//     back after 1/q; under random replacement it is gone with probability 1 - exp(-1/x). A
//     region of F lines alone in a cache of C has C/F hits with random accesses; in laps it
//     has 20 % for twice the cache, 2 % for four times.
//  4. In laps with the oldest replaced first, a line is gone if it comes back later than
//     T. Sets do not fill evenly, so the change extends over a range of sizes.

// softLaps is that range, relative: a cache of n ways whose sets get lines as evenly as
// possible stops hitting at 1 + 1/n of its size. 4 is the lab's.
const softLaps = 0.25

// region is a region of a load, flat.
type region struct {
	accesses float64 // per operation, beyond L1
	own      float64 // lines that a thread uses
	lines    float64 // lines that all threads in the domain use
	parallel float64 // accesses outstanding at once, at most
	near     float64 // exposed share of the latency of L2 hits, and
	far      float64 // of what goes beyond (overlap.go)
	bounded  bool    // far by its core's buffers
	writes   float64
	laps     bool
	hits     float64 // share, in L2
	reads    float64 // per operation, beyond L2
}

// domain is an LLC and the CPUs below it.
type domain struct {
	node         int
	cpus, cores  float64
	lines        float64 // room
	loads        []int32
	footprint    float64 // lines of all regions
	full         bool    // they do not all fit
	limited      bool    // some load may hold only a share
	stay         float64 // T, cycles; if full
	held         float64 // lines at this T
	asked        float64 // lines per cycle
	busy, issued float64 // CPUs, and issue cycles per cycle: smt.go
	used, issues float64 // the same, as its loads have them
	siblings     float64
	byBusy       float64 // derivative of siblings
	fabric       server
	pace         [ofDomain]float64 // newton.go
	residual     [ofDomain]float64
}

func (d *domain) clear() {
	d.held, d.asked, d.used, d.issues = 0, 0, 0, 0
	d.fabric.lines = 0
}

// layDomain starts with the T of the last call, or as if everything missed.
func (s *Solver) layDomain(i int, warm bool) {
	d := &s.domains[i]
	d.pace, d.residual = [ofDomain]float64{1, 1, 1, 1}, [ofDomain]float64{}
	d.fabric.pace, d.fabric.residual = 1, 0
	if !warm || len(d.loads) == 0 {
		d.fabric.set(0)
	}
	s.fill(i)
	if !warm || !(d.stay > 0) || math.IsInf(d.stay, 1) {
		d.stay = 0
	}
	d.stay = max(d.stay, d.least())
	if !warm || len(d.loads) == 0 {
		d.busy, d.issued = 0, 0
		for _, j := range d.loads {
			l := &s.loads[j]
			d.busy += l.rate * l.cycles
			d.issued += l.rate * l.issue
		}
	}
}

// fill computes what its loads want of an LLC. A load that does nothing at all (no CPUs, as
// while the kernel moves its memory) wants nothing. If it were counted, it would fill a
// cache without requesting its lines, and T would be unlimited.
func (s *Solver) fill(i int) {
	d := &s.domains[i]
	d.footprint, d.asked, d.limited = 0, 0, false
	for _, j := range d.loads {
		l := &s.loads[j]
		if l.adding.counted = l.fetches(); l.rate <= 0 {
			continue
		}
		if l.cache > 0 {
			s.fillCapped(d, l)
			continue
		}
		for _, r := range s.regions[l.first:l.last] {
			if r.reads > 0 {
				d.footprint += r.lines
				d.asked += l.rate * r.reads
			}
		}
		if l.adding.counted {
			d.footprint += l.addLines
			d.asked += l.rate * l.adds
		}
	}
	d.full = d.footprint > d.lines
}

// fetches reports that lines it adds to leave its cores' caches.
func (l *load) fetches() bool {
	return l.adds > 0 && l.rate > 0 && (l.adding.fetch > 1e-9 || !math.IsInf(l.stay, 1)) // below this it is rounding
}

// longestStay bounds T, cycles: days. What is read less often fills no cache, and T would become
// infinite where nothing else would (a mover's rounding rest of a step, say).
const longestStay = 1e15

// idles says that what does not fit is read so seldom that T does not matter any more.
func (d *domain) idles() bool { return d.stay >= longestStay && d.held < d.lines }

// least is the smallest possible T: everything misses.
func (d *domain) least() float64 {
	if d.asked <= 0 {
		return 1
	}
	return min(d.lines/d.asked, longestStay)
}

// inLLC is number 3: misses per read, the share of its lines that a region holds, and both
// derivatives with respect to ln x (the first one negated). Where the LLC is not full, it
// holds everything.
func inLLC(full, laps bool, x float64) (misses, holds, lessMisses, moreHolds float64) {
	switch {
	case !full:
		return 0, 1, 0, 0
	case !laps:
		misses = 1 / (1 + x)
		holds = 1 - misses
		return misses, holds, misses * holds, misses * holds
	case x < 1.0/40: // exp(-40) is negligible
		return 1, x, 0, x
	}
	hits := expMinus(1 / x)
	holds = x * (1 - hits)
	return 1 - hits, holds, hits / x, max(0, holds-hits)
}

// writtenBack is the share of reads that lead to a line being written back to memory, and
// its derivative with respect to the misses. A line comes into a core's caches several
// times before the LLC drops it, and is modified each time with this probability.
func writtenBack(writes, misses float64) (back, byMisses float64) {
	if writes <= 0 {
		return 0, 0
	}
	all := misses + (1-misses)*writes
	return misses * writes / all, writes * writes / (all * all)
}

// split computes what of its regions a load's L2 holds, and how its accesses overlap, where
// so many threads of a core are busy.
func (s *Solver) split(l *load, threads float64) {
	regions := s.regions[l.first:l.last]
	l.threadsOfCore = threads
	room := s.sys.l2Of(l.domain) / LineBytes / threads
	l.stay = stayInL2(regions, l.adds, l.addLines, room, l.stay)
	l.near = 0
	for i := range regions {
		r := &regions[i]
		r.hits = hitsInL2(r, l.stay)
		r.reads = r.accesses * (1 - r.hits)
		near, far, bounded := s.sys.overlaps(r.parallel, r.laps, l.threadsOfCore)
		r.near, r.far, r.bounded = 1/near, 1/far, bounded
		l.near += r.accesses * r.hits * r.near * s.sys.L2Cycles
	}
}

// hitsInL2 is numbers 3 and 4.
func hitsInL2(r *region, stay float64) float64 {
	switch x := r.accesses * stay / r.own; {
	case math.IsInf(x, 1):
		return 1
	case !r.laps:
		return x / (1 + x)
	default:
		// x is room / size where it is alone.
		return min(1, max(0, (1+softLaps-1/max(x, 0.1))/softLaps))
	}
}

// stayInL2 is T in operations, +Inf where everything fits. Lines held are concave in T, so
// Newton's method from below never overshoots; from the last value it is below after one
// step.
func stayInL2(regions []region, adds, addLines, room, before float64) float64 {
	size, asked := 0.0, adds
	for i := range regions {
		size += regions[i].own
		asked += regions[i].accesses
	}
	if adds > 0 {
		size += addLines
	}
	if size <= room || asked <= 0 {
		return math.Inf(1)
	}
	if room <= 0 {
		return 0
	}
	stay := room / asked
	if len(regions) == 1 && adds <= 0 {
		r := &regions[0]
		if r.laps {
			return stay
		}
		return room / r.accesses * (r.own / (r.own - room))
	}
	least := stay
	if before > stay && !math.IsInf(before, 1) {
		stay = before
	}
	for range 60 {
		held, slope := heldInL2(regions, adds, addLines, stay)
		step := max((room-held)/max(slope, 1e-300), least-stay)
		stay += step
		if math.Abs(step) <= 1e-10*stay {
			break
		}
	}
	return stay
}

// heldInL2 is the lines held, and the derivative with respect to T.
func heldInL2(regions []region, adds, addLines, stay float64) (held, slope float64) {
	random := func(accesses, lines float64) {
		if accesses > 0 {
			misses := 1 / (1 + accesses*stay/lines)
			held += lines * (1 - misses)
			slope += accesses * misses * misses
		}
	}
	for i := range regions {
		r := &regions[i]
		switch in := r.accesses * stay; {
		case !r.laps:
			random(r.accesses, r.own)
		case in < r.own:
			held += in
			slope += r.accesses
		default:
			held += r.own
		}
	}
	random(adds, addLines)
	return held, slope
}
