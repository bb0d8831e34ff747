// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// problem is one error in a shape, and its place: the path of its YAML value.
type problem struct {
	path string // "nodes[1].cpus"
	text string // what is wrong, and what to do
}

type problems []problem

func (p *problems) add(path, format string, args ...any) {
	*p = append(*p, problem{path, fmt.Sprintf(format, args...)})
}

// Validate lists everything that is wrong with a shape, one sentence each.
func (s Shape) Validate() error {
	var errs []error
	for _, p := range s.problems() {
		errs = append(errs, fmt.Errorf("shape %q: %s: %s", s.Name, p.path, p.text))
	}
	return errors.Join(errs...)
}

// problems checks the parts in an order in which later ones may rely on earlier.
func (s Shape) problems() problems {
	var p problems
	s.checkName(&p)
	s.checkNodes(&p)
	s.checkDistances(&p)
	s.Model.check(&p)
	if len(p) == 0 {
		s.checkCPUs(&p)
		s.checkLatencies(&p)
		s.checkLinks(&p)
	}
	return p
}

func (s Shape) checkName(p *problems) {
	if s.Name == "" || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		p.add("name", "%q is not a name: use lower-case letters, digits and dashes", s.Name)
	}
}

func (s Shape) checkNodes(p *problems) {
	if n := len(s.Nodes); n == 0 || n > MaxShapeNodes {
		p.add("nodes", "there are %d: list 1 to %d nodes", n, MaxShapeNodes)
	}
	var sum unit.Bytes
	for i, n := range s.Nodes {
		path := fmt.Sprintf("nodes[%d].memory", i)
		switch {
		case n.Memory < MinShapeMemory:
			p.add(path, "%v is too little for a guest: give at least %v", n.Memory, MinShapeMemory)
		case n.Memory%shapeMemoryStep != 0:
			p.add(path, "%d bytes are not whole huge pages: use a multiple of %v", int64(n.Memory), shapeMemoryStep)
		case n.Memory > math.MaxInt64/MaxShapeNodes-sum:
			p.add(path, "%v does not add up with the other nodes: give less", n.Memory)
		default:
			sum += n.Memory
		}
	}
}

func (s Shape) checkDistances(p *problems) {
	if len(s.Distances) != len(s.Nodes) {
		p.add("distances", "%d rows for %d nodes: give one row and one column per node", len(s.Distances), len(s.Nodes))
	}
	for i, row := range s.Distances {
		path := fmt.Sprintf("distances[%d]", i)
		if len(row) != len(s.Nodes) {
			p.add(path, "%d columns for %d nodes: give one row and one column per node", len(row), len(s.Nodes))
		}
		for j, d := range row {
			checkDistance(p, fmt.Sprintf("%s[%d]", path, j), i == j, d)
		}
	}
}

func checkDistance(p *problems, path string, local bool, d int) {
	switch {
	case local && d != LocalDistance:
		p.add(path, "%d is no distance of a node to itself: write %d", d, LocalDistance)
	case !local && (d <= LocalDistance || d >= maxDistance):
		p.add(path, "%d is no distance between nodes: use %d to %d", d, LocalDistance+1, maxDistance-1)
	}
}

// check knows the plugin's limits (conf_check in lab/plugin/model.c).
func (m Model) check(p *problems) {
	const most = 1_000_000 // keeps sums of cycles far from 32 bits
	for _, f := range []struct {
		name  string
		value int
	}{
		{"mhz", m.MHz}, {"time_factor", m.TimeFactor}, {"l2_cycles", m.L2Cycles}, {"llc_cycles", m.LLCCycles},
		{"memory_cycles_per_line", m.MCCycles}, {"link_cycles_per_line", m.LinkCycles}, {"stream_parallelism", m.StreamParallelism},
		{"atomic_cycles", m.AtomicCycles},
	} {
		if f.value < 1 || f.value > most {
			p.add("model."+f.name, "%d is out of range: use 1 to %d", f.value, most)
		}
	}
	checkCache(p, "l1", m.L1, maxShapeL1)
	checkCache(p, "l2", m.L2, unit.GiB)
	checkCache(p, "llc", m.LLC, unit.GiB)
	for name, table := range map[string]map[int]int{"dram_cycles": m.DRAMCycles, "transfer_cycles": m.TransferCycles} {
		for _, d := range slices.Sorted(maps.Keys(table)) {
			if c := table[d]; c < 1 || c > most {
				p.add("model."+name, "%d cycles at distance %d are out of range: use 1 to %d", c, d, most)
			}
		}
	}
}

func checkCache(p *problems, name string, size, most unit.Bytes) {
	if size < lineBytes || size > most || size&(size-1) != 0 {
		p.add("model."+name, "%v is no cache the plugin can model: use a power of two from %d B to %v", size, lineBytes, most)
	}
}

// checkCPUs requires every CPU from 0 on exactly once.
func (s Shape) checkCPUs(p *problems) {
	var seen set.CPUSet
	for i, n := range s.Nodes {
		if twice := seen.Intersect(n.CPUs); !twice.IsEmpty() {
			p.add(fmt.Sprintf("nodes[%d].cpus", i), "CPUs %v are already in a node before: give every CPU to one node", twice)
		}
		seen = seen.Union(n.CPUs)
	}
	if s.Nodes[0].CPUs.IsEmpty() {
		p.add("nodes[0].cpus", "node 0 has no CPU: the guest boots there, give it one")
	}
	for id := range seen.Len() {
		if !seen.Has(id) {
			p.add("nodes", "CPU %d is in no node: number the CPUs without gaps from 0", id)
			break
		}
	}
	if seen.Len() > MaxShapeCPUs {
		p.add("nodes", "there are %d CPUs: use at most %d", seen.Len(), MaxShapeCPUs)
	}
	s.checkHousekeeping(p, seen)
	s.checkThreads(p, seen)
}

// checkThreads requires whole cores, each on one node.
func (s Shape) checkThreads(p *problems, all set.CPUSet) {
	if s.Threads < 1 || s.Threads > 2 {
		p.add("threads", "%d CPUs do not share a core on any machine the lab models: use 1 or 2", s.Threads)
		return
	}
	for i, n := range s.Nodes {
		for id := range n.CPUs.All() {
			if rest := s.coreOf(id).Minus(n.CPUs); !rest.IsEmpty() {
				p.add(fmt.Sprintf("nodes[%d].cpus", i), "CPU %d shares a core with CPU %v, which is not in this node: keep both together", id, rest)
				return
			}
		}
	}
}

func (s Shape) checkHousekeeping(p *problems, all set.CPUSet) {
	if extra := s.Housekeeping.Minus(all); !extra.IsEmpty() {
		p.add("housekeeping", "CPUs %v are in no node: name CPUs of the nodes", extra)
	}
	if all.SubsetOf(s.Housekeeping) && !all.IsEmpty() {
		p.add("housekeeping", "it takes every CPU: leave one for workloads")
	}
}

func (s Shape) checkLatencies(p *problems) {
	missing := map[int]bool{}
	for _, row := range s.Distances {
		for _, d := range row {
			if _, ok := s.Model.DRAMCycles[d]; !ok && !missing[d] {
				missing[d] = true
				p.add("model.dram_cycles", "no latency for distance %d: add one", d)
			}
		}
	}
}

func (s Shape) checkLinks(p *problems) {
	pairs := s.LinkPairs()
	seen := map[[2]int]bool{}
	for i, l := range pairs {
		path := fmt.Sprintf("links[%d]", i)
		a, b := min(l[0], l[1]), max(l[0], l[1])
		switch {
		case a < 0 || b >= len(s.Nodes) || a == b:
			p.add(path, "%v does not join two of the nodes: use ids 0 to %d", l, len(s.Nodes)-1)
			return
		case seen[[2]int{a, b}]:
			p.add(path, "%v is there twice: name every pair once", l)
		}
		seen[[2]int{a, b}] = true
	}
	if 2*len(pairs) > MaxShapeLinks {
		p.add("links", "%d pairs need %d directed links: name at most %d pairs", len(pairs), 2*len(pairs), MaxShapeLinks/2)
	}
	if !connected(len(s.Nodes), pairs) {
		p.add("links", "they leave a node unreachable: join all nodes")
	}
}
