// SPDX-License-Identifier: Apache-2.0

package memsys

const (
	// tolerance is how far the equations may be off, relative, if what is left after
	// them, going by how fast it got there, is remainder. Mostly that is far less; where
	// it is not, loads are coupled by what Newton's method does not know of: those that
	// add (adds.go) come closer by small steps, and must come closer.
	tolerance = 1e-5
	remainder = 1e-6
	closer    = 0.1
	// mostRounds is when it gives up and lets Residue say so. Ten suffice mostly.
	mostRounds = 400
	// leastCycles keeps an operation of nothing from being done infinitely often.
	leastCycles = 1e-6
)

// Solver finds the state of affairs. It keeps its room between calls, and begins
// with the last result if the loads are as many as then; it is not safe for
// concurrent use. The zero Solver is ready.
type Solver struct {
	// Coarse is how many times farther off than 1e-6 an answer may be; 0: once. A world
	// whose windows are means of a minute has no use for six digits.
	Coarse float64
	// Keep begins with the last state of controllers, links and LLCs even if the loads are
	// others than then; each load says itself where it begins (Load.Before).
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
	shared    []float64 // the same of the lines they add to
	peers     []float64 // the same of where lines they take from other cores are
	nextPeers []float64 // adds.go
	newton    newton
	result    Result
	floats    []float64 // what the result's slices are cut from
}

// pair is the way from a node's CPUs to a node's memory.
type pair struct {
	idle    float64 // latency, cycles
	latency float64 // with what lines wait now
	over    float64 // what lines of another core's cache wait on the links, adds.go
	// servers that the lines read pass: the controller and Path; those that lines
	// written back pass: links only, the controller is the same.
	read, written []int32
	lines, back   float64 // a cycle: read, written back
	transfers     float64 // lines of another core's cache
}

// Solve is the fixed point for these loads. The result is valid until the next
// Solve.
//
//  1. Given the wait at each server and how long a line stays in each LLC, a load's
//     cycles per operation, its traffic and its part of the LLC follow, and so do the
//     derivatives of all that (load.go, caches.go).
//  2. The unknowns are right if servers are as busy as their waits say (queue.go),
//     and LLCs hold as much as they can.
//  3. Newton's method finds them, all at once; a step that overshoots is made smaller
//     the next time (newton.go).
//  4. What couples loads otherwise, lines they add to (adds.go) and issue slots of
//     siblings (smt.go), follows round by round.
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

// settled goes by how far off it is and was. The rest of a geometric series is what is
// left to come.
func (s *Solver) settled(off, before float64) bool {
	part := max(1, s.Coarse)
	if len(s.adders) > 0 {
		part *= closer
	}
	return off <= tolerance*part && off*off <= remainder*part*(before-off)
}

// ways is what a read takes from each node to each, and empties their counts.
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

// evaluate is number 1, for all loads: it returns the largest relative change of
// cycles per operation.
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

// count is the lines that each server gets from the pairs.
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
