// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// load is a Load, flat.
type load struct {
	workload, domain, node int
	cpus, threads, slow    float64
	most                   float64 // requested operations per cycle
	base, issue            float64 // cycles without memory; issue slots among them
	near                   float64 // cycles of L2 hits
	stay                   float64 // operations for which a line stays in L2
	first, last            int32   // of its regions
	stretch                float64 // of issue, by siblings; below: its derivatives with respect to the domain's
	byBusy, byIssued       float64
	threadsOfCore          float64 // that are busy, its own included: they share L2 and buffers
	adds, addLines         float64
	adding                 adding
	cycles                 float64 // per operation
	rate                   float64 // operations per cycle
	reads, back            float64 // lines per operation, of regions
	held                   float64 // lines in the LLC
	latency, addLatency    float64 // of its reads, and of its adds
	misses                 float64 // of L2
	isolated
}

// rateAt is the operations per cycle when each takes this many cycles.
func (l *load) rateAt(cycles float64) float64 { return min(l.cpus/cycles, l.most) }

// free reports that only its CPUs limit it, not the demand.
func (l *load) free() bool { return l.cpus < l.most*l.cycles }

// mostFeedback is far above what caches can do (caches.go): that is below a half.
const mostFeedback = 0.95

// sums is what the regions of a load add up to, per operation. "less" is the decrease in
// per cent where the rate or T is 1 % larger.
type sums struct {
	reads, lessReads     float64 // lines from DRAM
	exposed, lessExposed float64 // the same, weighted by the exposed share of the latency (overlap.go)
	back, lessBack       float64 // lines written back
	hits                 float64 // in the LLC, weighted in the same way
	bounded, boundedHits float64 // parts of exposed and hits of which a core's buffers decide the share
	held, moreHeld       float64 // lines there
	all                  float64 // reads beyond L2
	lessAdded            float64 // lines from DRAM for adds; the same number fewer is written back
}

func (s *Solver) sum(l *load, d *domain) (t sums) {
	stay, full := d.stay*l.rate, d.full
	if l.capped = false; l.over {
		stay, full, l.capped = s.within(l, stay, full)
	}
	for i := l.first; i < l.last; i++ {
		r := &s.regions[i]
		if r.reads <= 0 {
			continue
		}
		misses, holds, less, more := inLLC(full, r.laps, stay*r.reads/r.lines)
		t.all += r.reads
		t.reads += r.reads * misses
		t.lessReads += r.reads * less
		exposed, hits := r.reads*misses*r.far, r.reads*(1-misses)*r.far
		t.exposed += exposed
		t.hits += hits
		t.lessExposed += r.reads * less * r.far
		if r.bounded {
			t.bounded += exposed
			t.boundedHits += hits
		}
		if r.writes > 0 {
			back, by := writtenBack(r.writes, misses)
			t.back += r.reads * back
			t.lessBack += r.reads * less * by
		}
		t.held += r.lines * holds
		t.moreHeld += r.lines * more
	}
	if l.adds > 0 && l.adding.fetch > 1e-9 { // below this it is rounding
		misses, holds, less, more := inLLC(full, false, stay*l.adds*l.adding.fetch/l.addLines)
		l.adding.misses = misses
		t.lessAdded = l.adds * l.adding.near * less
		t.held += l.addLines * holds
		t.moreHeld += l.addLines * more
	}
	if l.capped {
		t.fix()
	}
	return t
}

// evaluateLoad evaluates a load at the present waits and T:
//
//  1. Cycles, at its old rate, corrected for the effect of its own rate on what the LLC
//     holds, so that they are consistent with the rate that follows from them.
//  2. Its traffic and its lines in the LLC at that rate.
//  3. The derivatives of both with respect to the waits and T, for Newton's method.
//
// It returns the relative error of the cycles.
func (s *Solver) evaluateLoad(i int) float64 {
	l := &s.loads[i]
	d := &s.domains[l.domain]
	home := s.home[i*s.nodes : (i+1)*s.nodes]
	pairs := s.pairs[l.node*s.nodes : (l.node+1)*s.nodes]
	t := s.sum(l, d)
	latency := 0.0
	for m, share := range home {
		latency += share * pairs[m].latency
	}
	latency += d.fabric.wait
	if l.adding.adder >= 0 {
		l.addLatency = s.costOfAdds(i)
	}
	cycles := l.base + l.issue*(l.stretch-1) + l.near + l.adding.cycles +
		t.hits*s.sys.LLCCycles + t.exposed*latency // 1
	cycles = max(leastCycles, l.slow*cycles)
	if l.throttled = false; l.limit > 0 {
		cycles = l.throttle(cycles, &t)
	}
	feedback := 0.0 // of ln rate on ln cycles, negative
	if l.free() {
		feedback = min(t.feedback(s, l, latency), mostFeedback)
	}
	change := (cycles - l.cycles) / (1 - feedback) / l.cycles
	change = max(-0.9, change)
	l.cycles += change * l.cycles
	before := l.rate
	l.rate = l.rateAt(l.cycles)
	if before > 0 {
		t.follow(l, max(-0.5, min(0.5, l.rate/before-1))) // 2
	}
	l.reads, l.back, l.held, l.latency, l.misses = t.reads, t.back, t.held, latency, t.all
	s.spread(l, home, pairs, &t)
	d.fabric.lines += l.rate * (t.reads + t.back)
	d.held += t.held
	d.used += l.rate * l.cycles
	d.issues += l.rate * l.issue
	d.asked += l.rate * (t.all + l.adds*l.adding.fetch)
	s.newton.addLoad(s, i, home, &t) // 3
	return max(math.Abs(change), math.Abs(l.adding.off))
}

// feedback is the derivative of ln cycles with respect to ln rate, negative.
func (t *sums) feedback(s *Solver, l *load, latency float64) float64 {
	if l.throttled {
		return -(l.cpus * (t.lessReads + t.lessBack + 2*t.lessAdded) / l.limit) / l.cycles
	}
	less := t.lessExposed*latency + t.lessAdded*l.addLatency
	return l.slow * (less - (t.lessExposed+t.lessAdded)*s.sys.LLCCycles) / l.cycles
}

// follow updates the sums after a small relative change of the rate.
func (t *sums) follow(l *load, by float64) {
	t.reads = max(0, t.reads-by*t.lessReads)
	t.exposed = max(0, t.exposed-by*t.lessExposed)
	t.back = max(0, t.back-by*t.lessBack)
	t.held = max(0, t.held+by*t.moreHeld)
	l.adding.reads = max(0, l.adding.reads-by*t.lessAdded)
	l.adding.back = max(0, l.adding.back-by*t.lessAdded)
}

// spread adds a load's lines to the ways they take.
func (s *Solver) spread(l *load, home []float64, pairs []pair, t *sums) {
	reads, back := l.rate*t.reads, l.rate*t.back
	for m, share := range home {
		pairs[m].lines += share * reads
		pairs[m].back += share * back
	}
}
