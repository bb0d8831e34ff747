// SPDX-License-Identifier: Apache-2.0

package numad

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/set"
)

// offer is what a node has for one workload.
type offer struct {
	cpus, bytes float64
	magnitude   float64
}

// pick is number 5 of the package comment:
//
//  1. Offers: what a node has left and what the workload already has there. A bound
//     workload gets a heavier bias (5/4 of its memory, not 17/16) and, on its nodes, the mean
//     of their CPU and its own.
//  2. The least number of nodes, by CPU (less half of the margin that Utilisation leaves)
//     and by memory.
//  3. For each node, the chain of nodes by distance from it, larger offers first. The
//     chain with the largest sum wins, each offer divided by its distance squared.
//  4. Nodes of that chain until the request is met. CPU is ignored where the candidates
//     together use less than there is, or where the request exceeds what is free.
func (s *scan) pick(i int, cpus, bytes float64) set.NodeSet {
	if len(s.nodes) == 0 {
		return set.NodeSet{}
	}
	offers, free := s.offers(i, cpus, bytes) // 1
	size := s.mean()
	flex := float64(max(0, 1-float64(s.cfg.Utilisation)) / 2 * size.cpus)
	least := int(max(math.Ceil(bytes/size.memory), math.Ceil((cpus-flex)/size.cpus))) // 2
	least = min(max(least, 0), len(s.nodes))
	chain := s.bestChain(offers, least) // 3
	enough := cpus > free || s.used() <= size.cpus*float64(len(s.nodes))
	var target set.NodeSet
	for _, k := range chain { // 4
		if least <= 0 && bytes <= 0 && (enough || cpus <= flex) {
			break
		}
		target = target.With(s.nodes[k].id)
		least--
		bytes -= max(0, min(offers[k].bytes-margin, bytes))
		cpus -= min(offers[k].cpus, cpus)
	}
	return target
}

// margin is memory that numad leaves on a node (MBS_MARGIN).
const margin = 100 << 20

// used is the CPU use of all candidates together.
func (s *scan) used() float64 {
	sum := 0.0
	for _, n := range s.needs {
		if n.cpus > s.cfg.MinCPU && n.bytes > float64(s.cfg.MinMemory) {
			sum += n.cpus
		}
	}
	return sum
}

// mean is a node of average size.
func (s *scan) mean() node {
	var m node
	for _, n := range s.nodes {
		m.cpus, m.memory = m.cpus+n.cpus, m.memory+n.memory
	}
	m.cpus, m.memory = m.cpus/float64(len(s.nodes)), m.memory/float64(len(s.nodes))
	return m
}

// offers also returns the CPU that is free on all nodes together.
func (s *scan) offers(i int, cpus, bytes float64) ([]offer, float64) {
	n, bound := s.needs[i], s.next.Workloads[i].Nodes
	mean := n.cpus
	for _, node := range s.nodes {
		if bound.Has(node.id) {
			mean += node.free
		}
	}
	mean /= float64(max(1, bound.Len()))
	offers := make([]offer, len(s.nodes))
	free := 0.0
	for k, node := range s.nodes {
		o := offer{cpus: node.free, bytes: node.mbFree}
		switch {
		case bound.IsEmpty():
			o.bytes += float64(n.by[k] * 17 / 16)
			o.cpus += n.cpus * n.by[k] / max(1, n.bytes)
		default:
			o.bytes += float64(n.by[k] * 5 / 4)
			if bound.Has(node.id) {
				o.cpus = mean
			}
		}
		free += o.cpus
		o.cpus, o.bytes = max(0.01, min(o.cpus, node.cpus)), min(o.bytes, node.memory)
		o.magnitude = magnitude(o, cpus, bytes)
		offers[k] = o
	}
	return offers, free
}

// magnitude weights what is needed more than what is in excess: memory 10 to 4, CPU 6 to 1
// (combined_value_of_weighted_resources).
func magnitude(o offer, cpus, bytes float64) float64 {
	memory := float64(10*min(o.bytes, bytes)) + float64(4*max(0, o.bytes-bytes))
	cpu := float64(6*min(o.cpus, cpus)) + max(0, o.cpus-cpus)
	return memory * cpu
}

// bestChain is number 3 of pick. Of equal chains the lowest index wins.
func (s *scan) bestChain(offers []offer, least int) []int {
	var best []int
	most := -1.0
	for from := range s.nodes {
		chain := s.chain(from, offers)
		sum := 0.0
		for _, k := range chain[:least] {
			d := s.nodes[k].distance[from]
			sum += offers[k].magnitude / (d * d)
		}
		if sum > most {
			best, most = chain, sum
		}
	}
	return best
}

// chain returns all nodes by their distance to one node, larger offers first.
func (s *scan) chain(from int, offers []offer) []int {
	chain := make([]int, len(s.nodes))
	for k := range chain {
		chain[k] = k
	}
	slices.SortFunc(chain, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(s.nodes[a].distance[from], s.nodes[b].distance[from]),
			cmp.Compare(offers[b].magnitude, offers[a].magnitude), a-b)
	})
	return chain
}

// better reports whether a workload that was examined just now should be examined again: it
// is on the node with the least CPU or memory left, it would fit on one node, and with the
// workload on the node with the most left, both nodes would be closer to the mean.
func (s *scan) better(i int, cpus, bytes float64) bool {
	n, at, size := s.needs[i], s.next.Workloads[i].Nodes, s.mean()
	c := s.spread(func(n node) float64 { return n.free })
	b := s.spread(func(n node) float64 { return n.mbFree })
	return (at.Has(c.leastAt) || at.Has(b.leastAt)) && cpus < size.cpus && bytes < size.memory &&
		c.evened(n.cpus) < c.most-c.least-s.cfg.MinCPU && b.evened(n.bytes) < b.most-b.least
}

// spread of what nodes have left.
type spread struct {
	least, most, mean float64
	leastAt           int // node id
}

func (s *scan) spread(of func(node) float64) spread {
	sp := spread{least: math.Inf(1), most: math.Inf(-1)}
	for _, n := range s.nodes {
		v := of(n)
		if v < sp.least {
			sp.least, sp.leastAt = v, n.id
		}
		sp.most = max(sp.most, v)
		sp.mean += v / float64(len(s.nodes))
	}
	return sp
}

// evened is the distance of both ends from the mean after this much has moved.
func (sp spread) evened(moved float64) float64 {
	return math.Abs(sp.least+moved-sp.mean) + math.Abs(sp.most-moved-sp.mean)
}
