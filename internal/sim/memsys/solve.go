// SPDX-License-Identifier: Apache-2.0

package memsys

const (
	// tolerance is the largest relative error of the equations, provided that the estimated
	// remaining error, from the speed of convergence, is below remainder. Usually the
	// remaining error is far smaller. Where it is not, loads are coupled in ways that
	// Newton's method does not know: loads that add (adds.go) converge by small steps, and
	// must get closer.
	tolerance = 1e-5
	remainder = 1e-6
	closer    = 0.1
	// mostRounds is when it gives up; Residue then shows the error. Ten rounds are usually
	// enough.
	mostRounds = 400
	// leastCycles keeps an empty operation from being done infinitely often.
	leastCycles = 1e-6
)

// Solver finds the steady state. It keeps its memory between calls, and starts from the
// last result if there are as many loads as then. It is not safe for concurrent use. The
// zero Solver is ready.
type Solver struct {
	// Coarse multiplies the tolerance of 1e-6; 0: once. A world whose windows are means of
	// a minute has no use for six digits.
	Coarse float64
	// Keep starts from the last state of controllers, links and LLCs even if the loads are
	// different; each load has its own starting point (Load.Before).
	Keep bool

	sys       *System
	nodes     int
	pairs     []pair // [c × nodes + m]
	servers   []server
	domains   []domain
	domainsOf [][]int32 // by node
	loads     []load
	regions   []region
	adders    []adder
	home      []float64 // [load × nodes + m]
	shared    []float64 // the same for the lines they add to
	peers     []float64 // the same for the lines they take from other cores
	nextPeers []float64 // adds.go
	newton    newton
	result    Result
	floats    []float64 // memory of the result's slices
}

// pair is the way from a node's CPUs to a node's memory.
type pair struct {
	idle    float64 // latency, cycles
	latency float64 // with the present waits
	over    float64 // waits on the links of lines from another core's cache, adds.go
	// Servers that lines read pass: the controller and Path. Servers that lines written
	// back pass: links only, as the controller is the same.
	read, written []int32
	lines, back   float64 // per cycle: read, written back
	transfers     float64 // lines from another core's cache
}

// Solve is the fixed point for these loads. The result is valid until the next
// Solve.
//
//  1. The wait at each server and the time that a line stays in each LLC determine a
//     load's cycles per operation, its traffic and its part of the LLC, and the derivatives
//     of all of these (load.go, caches.go).
//  2. The unknowns are right if servers are as busy as their waits imply (queue.go), and
//     LLCs hold as much as they can.
//  3. Newton's method finds them, all at once. After an overshoot the next step is smaller
//     (newton.go).
//  4. The other couplings of loads, lines they add to (adds.go) and issue slots of
//     siblings (smt.go), are updated round by round.
func (s *Solver) Solve(sys *System, loads []Load) *Result {
	s.prepare(sys, loads)
	round, before := 1, 1.0
	for ; ; round++ {
		s.ways()
		s.share()
		s.contend()
		changed := s.evaluate() // 1
		off := max(changed, s.newton.residuals(s))
		if s.settled(off, before) || round == mostRounds { // 2
			before = off
			break
		}
		before = off
		s.newton.step(s, round) // 3
	}
	s.report(loads, round, before)
	return &s.result
}

// settled uses the present and the last error. The remaining error is estimated as the rest
// of a geometric series.
func (s *Solver) settled(off, before float64) bool {
	part := max(1, s.Coarse)
	if len(s.adders) > 0 {
		part *= closer
	}
	return off <= tolerance*part && off*off <= remainder*part*(before-off)
}

// ways computes what a read takes from each node to each, and resets their counts.
func (s *Solver) ways() {
	for i := range s.pairs {
		p := &s.pairs[i]
		p.latency, p.over = p.idle+s.servers[p.read[0]].wait, 0
		for _, k := range p.read[1:] {
			p.latency += s.servers[k].wait
			p.over += s.servers[k].over
		}
		p.lines, p.back, p.transfers = 0, 0, 0
	}
}

// evaluate is number 1, for all loads. It returns the largest relative change of cycles per
// operation.
func (s *Solver) evaluate() float64 {
	for i := range s.domains {
		s.domains[i].clear()
	}
	s.newton.clear()
	worst := 0.0
	for i := range s.loads {
		change := s.evaluateLoad(i)
		if s.loads[i].adding.adder >= 0 {
			s.spreadAdds(i)
		}
		worst = max(worst, change)
	}
	s.count()
	return worst
}

// count computes the lines that each server gets from the pairs.
func (s *Solver) count() {
	for k := range s.servers {
		s.servers[k].lines = 0
	}
	for i := range s.pairs {
		p := &s.pairs[i]
		if p.lines == 0 && p.back == 0 && p.transfers == 0 {
			continue
		}
		for _, k := range p.read[1:] {
			s.servers[k].lines += p.lines + p.transfers
		}
		for _, k := range p.written {
			s.servers[k].lines += p.back
		}
		s.servers[p.read[0]].lines += p.lines + p.back
	}
}
