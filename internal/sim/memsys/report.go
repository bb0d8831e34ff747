// SPDX-License-Identifier: Apache-2.0

package memsys

// report lays out the result. Its slices belong to the solver.
func (s *Solver) report(loads []Load, rounds int, residue float64) {
	r := &s.result
	r.Rounds, r.Residue = rounds, residue
	r.Loads = grow(r.Loads, len(loads))
	r.Nodes, r.Links = grow(r.Nodes, s.nodes), grow(r.Links, len(s.servers)-s.nodes)
	s.floats = grow(s.floats, 2*len(loads)*s.nodes)
	for i := range loads {
		s.reportLoad(i, &r.Loads[i])
	}
	for k := range s.servers {
		to := &r.Nodes
		at := k
		if k >= s.nodes {
			to, at = &r.Links, k-s.nodes
		}
		(*to)[at] = s.servers[k].report()
	}
	r.Fabrics = grow(r.Fabrics, len(s.domains))
	for i := range s.domains {
		r.Fabrics[i] = s.domains[i].fabric.report()
	}
}

func (q *server) report() ServerResult {
	return ServerResult{Lines: q.lines, Utilisation: min(1, q.lines*q.cycles), Wait: q.wait}
}

func (s *Solver) reportLoad(i int, to *LoadResult) {
	l := &s.loads[i]
	ops := l.rate * s.sys.Hz
	n := s.nodes
	*to = LoadResult{
		Cycles: l.cycles, Stall: max(0, l.cycles-l.slow*(l.base+l.issue*(l.stretch-1)+l.adds*s.sys.Atomic)),
		Ops: ops, CPUs: l.rate * l.cycles, L2Misses: l.misses + l.adds*(1-l.adding.own),
		Transfers: l.adds * l.adding.transfers, LLC: l.held * LineBytes, Latency: l.latency,
		DRAM: s.floats[2*i*n : (2*i+1)*n : (2*i+1)*n], Writebacks: s.floats[(2*i+1)*n : (2*i+2)*n : (2*i+2)*n],
	}
	if l.rate <= 0 {
		to.LLC = 0 // lines that it left there do not count
	}
	for m := range n {
		to.DRAM[m] = s.home[i*n+m]*l.reads + s.shared[i*n+m]*l.adding.reads
		to.Writebacks[m] = s.home[i*n+m]*l.back + s.shared[i*n+m]*l.adding.back
	}
}
