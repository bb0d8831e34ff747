// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"slices"
)

// prepare lays out the loads flat. It allocates nothing if the last call was as large.
func (s *Solver) prepare(sys *System, loads []Load) {
	if s.sys != sys {
		s.adopt(sys)
	}
	warm := (len(s.loads) == len(loads) || s.Keep && len(s.loads) > 0) && !s.lost()
	s.loads = grow(s.loads, len(loads))
	s.home, s.shared = grow(s.home, len(loads)*s.nodes), grow(s.shared, len(loads)*s.nodes)
	s.regions = s.regions[:0]
	for i := range s.domains {
		s.domains[i].loads = s.domains[i].loads[:0]
	}
	for i := range loads {
		s.layLoad(i, &loads[i], warm)
		d := &s.domains[loads[i].Domain]
		d.loads = append(d.loads, int32(i))
	}
	s.layAdders(warm)
	s.newton.spread(s)
	for i := range s.domains {
		s.layDomain(i, warm)
	}
	if !warm {
		for k := range s.servers {
			s.servers[k].set(0)
		}
	}
	for k := range s.servers {
		s.servers[k].pace, s.servers[k].residual = 1, 0
	}
}

// lost reports that the last Solve ended in NaN, which would spread to all that starts from
// it.
func (s *Solver) lost() bool {
	r := s.result.Residue
	return math.IsNaN(r) || math.IsInf(r, 0)
}

// grow is the slice at this length, with its elements kept as far as they go.
func grow[T any](to []T, n int) []T {
	for len(to) < n {
		var zero T
		to = append(to[:len(to):cap(to)], zero)
	}
	return to[:n]
}

// adopt lays out the system.
func (s *Solver) adopt(sys *System) {
	*s = Solver{Coarse: s.Coarse, Keep: s.Keep, sys: sys, nodes: len(sys.Nodes)}
	s.servers = make([]server, len(sys.Nodes)+len(sys.Links))
	for i := range sys.Nodes {
		s.servers[i].init(sys.Nodes[i].Server, sys.Queue, s.idleOf(i))
	}
	for i := range sys.Links {
		s.servers[len(sys.Nodes)+i].init(sys.Links[i], sys.Queue, s.idleOver(i))
	}
	s.pairs = make([]pair, s.nodes*s.nodes)
	for c := range s.nodes {
		for m := range s.nodes {
			p := &s.pairs[c*s.nodes+m]
			p.idle = sys.Latency[c][m]
			p.read = append([]int32{int32(m)}, s.links(c, m)...)
			p.written = s.links(m, c)
		}
	}
	s.domains = make([]domain, len(sys.Domains))
	for i, d := range sys.Domains {
		s.domains[i] = domain{node: d.Node, cpus: d.CPUs, cores: d.CPUs / float64(max(1, sys.Threads)), lines: d.LLC / LineBytes}
		s.domains[i].fabric.init(d.Fabric, sys.Queue, d.Idle)
	}
	s.domainsOf = make([][]int32, s.nodes)
	for i, d := range s.domains {
		s.domainsOf[d.node] = append(s.domainsOf[d.node], int32(i))
	}
	s.newton.init(s)
}

// links are the servers of Path[c][m].
func (s *Solver) links(c, m int) []int32 {
	var servers []int32
	for _, l := range s.sys.Path[c][m] {
		servers = append(servers, int32(s.nodes+l))
	}
	return servers
}

// idleOf is the latency that is 1 in the curve of a node's controller: that of its own
// CPUs, or of the nearest where it has none.
func (s *Solver) idleOf(m int) float64 {
	if s.sys.Nodes[m].CPUs > 0 {
		return s.sys.Latency[m][m]
	}
	least := math.Inf(1)
	for c := range s.nodes {
		if s.sys.Nodes[c].CPUs > 0 {
			least = min(least, s.sys.Latency[c][m])
		}
	}
	if math.IsInf(least, 1) {
		return s.sys.Latency[m][m]
	}
	return least
}

// idleOver is the same for a link: what it adds to the idle latency, the least among the
// pairs that use it. The nodes' own part already waits at the controller. Using a
// controller's curve for a link is a guess: none was published for links.
func (s *Solver) idleOver(link int) float64 {
	least := math.Inf(1)
	for c := range s.nodes {
		for m := range s.nodes {
			way := s.sys.Path[c][m]
			if slices.Contains(way, link) {
				least = min(least, max(0, s.sys.Latency[c][m]-s.ownOf(c, m))/float64(len(way)))
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// ownOf is the idle latency that a read by c's CPUs from m has without links: that from its
// own memory or, where it has none, from m's.
func (s *Solver) ownOf(c, m int) float64 {
	if s.sys.Nodes[c].Memory > 0 {
		return s.sys.Latency[c][c]
	}
	return s.idleOf(m)
}

// layLoad lays out one load and its regions. It starts from its last result, else as if
// alone.
func (s *Solver) layLoad(i int, from *Load, warm bool) {
	l := &s.loads[i]
	before, stretch, stay, threads := l.cycles, l.stretch, l.stay, l.threadsOfCore
	*l = load{
		stretch: 1, adding: l.adding, addLatency: l.addLatency,
		workload: from.Workload, domain: from.Domain, node: s.sys.Domains[from.Domain].Node,
		cpus: max(0, from.CPUs), most: math.Inf(1), slow: from.Slow, threads: max(from.Threads, from.CPUs),
	}
	if l.slow <= 0 {
		l.slow = 1
	}
	if from.Ops < math.Inf(1) {
		l.most = max(0, from.Ops/s.sys.Hz)
	}
	s.layIsolated(l, from)
	s.layHome(i, from)
	l.first = int32(len(s.regions))
	if w := from.Work; w != nil {
		s.layWork(l, w)
	}
	l.last = int32(len(s.regions))
	if warm && s.sys.Threads > 1 && threads >= 1 { // share will check this
		l.stretch, l.stay = stretch, stay
	} else {
		threads = 1
	}
	s.split(l, threads)
	l.cycles = before
	if !warm || before <= 0 {
		l.cycles = s.alone(i)
	}
	if from.Before > 0 {
		l.cycles = from.Before
	}
	l.rate = l.rateAt(l.cycles)
}

func (s *Solver) layWork(l *load, w *Work) {
	l.base, l.issue = w.Cycles, w.Cycles
	if w.Instructions > 0 {
		l.issue = min(w.Cycles, w.Instructions)
	}
	l.adds, l.addLines = w.Adds, max(1, w.Lines)
	for i := range w.Regions {
		r := &w.Regions[i]
		if r.Accesses <= 0 || r.Bytes <= 0 {
			continue
		}
		own := max(1, r.Bytes/LineBytes)
		all := own
		if !r.Shared {
			all = own * max(1, l.threads)
		}
		s.regions = append(s.regions, region{accesses: r.Accesses, own: own, lines: all,
			parallel: max(1, r.Parallelism), laps: r.Stream, writes: min(1, max(0, r.Writes))})
	}
}

// layHome copies where a load's memory is; nil is its own node.
func (s *Solver) layHome(i int, from *Load) {
	home, shared := s.home[i*s.nodes:(i+1)*s.nodes], s.shared[i*s.nodes:(i+1)*s.nodes]
	clear(home)
	if copy(home, from.Home) == 0 {
		home[s.loads[i].node] = 1
	}
	copy(shared, home)
	if from.Shared != nil {
		clear(shared)
		copy(shared, from.Shared)
	}
}

// alone is cycles per operation without waits and with half of its reads in the LLC: a
// guess.
func (s *Solver) alone(i int) float64 {
	l := &s.loads[i]
	latency := 0.0
	for m, share := range s.home[i*s.nodes : (i+1)*s.nodes] {
		latency += share * s.pairs[l.node*s.nodes+m].idle
	}
	sum := l.base + l.near + l.adds*(s.sys.Atomic+s.sys.L2Cycles)
	for _, r := range s.regions[l.first:l.last] {
		sum += r.reads * r.far * (s.sys.LLCCycles + latency) / 2
	}
	return max(leastCycles, l.slow*sum)
}
