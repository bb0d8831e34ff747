// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"

	"homenode/internal/machine"
)

// What links between packages carry:
//
//  1. Nodes are of one package by topology (machine.NodePackage), not by distance: a
//     package's nodes are at 11 to 17 from each other. Where packages are not known, nodes up
//     to samePackage count as one.
//  2. Between two packages there is one link each way, and all of their nodes share it.
//  3. A profile has what the CPUs of one node read from another node. This is a limit of
//     that pair, also within a package. Where packages have one node each, it is the link.
//  4. Where they have several, the pairs together do not get what each gets apart: the link
//     carries together × that, but at least what one pair gets. An estimate; nothing in a
//     profile shows it.
//  5. Without a profile it is linkShare of a package's memory bandwidth, and less between
//     each two where there are more packages, as a package's links are divided among them.
const (
	// samePackage: AMD's and Intel's nodes of one package start at 11 or 12.
	samePackage = 12
	// together: with a link for each pair of nodes, measured traffic from socket to socket
	// was 50 to 66 % less than modelled (docs/limits.md): 1/1.58.
	together = 0.63
	// linkShare and its fall with the root of the packages, on two measured machines: 34.3
	// GB/s between two Skylakes of 105 GB/s, where it says 42; 16.5 between each two of four
	// Gold 6130, where it says 17.0 (from membind rows of the measured placements: what
	// leaves the full node, by three links).
	linkShare = 0.4
	usualLink = 34e9 // bytes/s where packages are not known
)

// between identifies a directed link of number 2.
type between struct{ from, to int }

// links are the ways between nodes.
func (f *figures) links(y *System) {
	n := len(f.m.Nodes)
	y.Path = make([][][]int, n)
	shared := map[between]int{}
	for c := range n {
		y.Path[c] = make([][]int, n)
		for m := range n {
			if c != m {
				f.way(y, c, m, shared)
			}
		}
	}
}

// way is the way from node m's memory to node c's CPUs.
func (f *figures) way(y *System, c, m int, shared map[between]int) {
	add := func(bytes float64) int {
		y.Links = append(y.Links, Server{Cycles: LineBytes * f.hz / bytes})
		f.guess("waits on links")
		return len(y.Links) - 1
	}
	at, to, known := f.packages(c, m)
	pair := f.pair(f.m.Nodes[c], f.m.Nodes[m])
	switch {
	case !known || at == to:
		if pair == 0 && !f.near(c, m, known) {
			pair = usualLink
			f.guess("34 GB/s between nodes")
		}
		if pair > 0 {
			y.Path[c][m] = []int{add(pair)}
		}
		return
	case pair > 0 && (f.nodesOf(at) > 1 || f.nodesOf(to) > 1): // 3
		y.Path[c][m] = []int{add(pair)}
	}
	key := between{to, at}
	link, ok := shared[key]
	if !ok { // 2
		link = add(f.between(y, at, to))
		shared[key] = link
	}
	y.Path[c][m] = append(y.Path[c][m], link)
}

func (f *figures) packages(c, m int) (at, to int, known bool) {
	at, ok := f.m.NodePackage(f.m.Nodes[c].ID)
	to, ok2 := f.m.NodePackage(f.m.Nodes[m].ID)
	return at, to, ok && ok2
}

// near is number 1.
func (f *figures) near(c, m int, known bool) bool {
	if known {
		return true
	}
	d, ok := f.m.Distance(f.m.Nodes[c].ID, f.m.Nodes[m].ID).Get()
	return ok && d <= samePackage
}

// nodesOf is the number of a package's nodes with CPUs and memory.
func (f *figures) nodesOf(pkg int) (n int) {
	for _, node := range f.m.Nodes {
		if p, ok := f.m.NodePackage(node.ID); ok && p == pkg && !node.CPUs.IsEmpty() && node.Memory.Or(0) > 0 {
			n++
		}
	}
	return n
}

// pair is the bytes/s that a node's CPUs read from another node's memory; 0: not measured.
// If the way back of a pair could not be measured because the other node has no CPUs, it is
// taken to be like the way there.
func (f *figures) pair(c, m machine.Node) float64 {
	if b, ok := f.p.BandwidthBetween(c.ID, m.ID); ok && b.Median.Or(0) > 0 {
		return b.Median.Or(0)
	}
	if b, ok := f.p.BandwidthBetween(m.ID, c.ID); ok && c.CPUs.IsEmpty() && b.Median.Or(0) > 0 {
		return b.Median.Or(0)
	}
	return 0
}

// between is the bytes/s from package to's memory to package at's CPUs: numbers 4 and 5.
func (f *figures) between(y *System, at, to int) float64 {
	one, here, there := 0.0, 0.0, 0.0
	for c, from := range f.m.Nodes {
		p, _ := f.m.NodePackage(from.ID)
		if p == at {
			here += LineBytes * f.hz / y.Nodes[c].Cycles
		}
		if p == to {
			there += LineBytes * f.hz / y.Nodes[c].Cycles
		}
		for _, memory := range f.m.Nodes {
			q, _ := f.m.NodePackage(memory.ID)
			if p == at && q == to {
				one = math.Max(one, f.pair(from, memory))
			}
		}
	}
	if one > 0 { // 4
		if n := float64(min(f.nodesOf(at), f.nodesOf(to))); n > 1 {
			f.guess("what the nodes of a package read together from another")
			return one * math.Max(1, n*together)
		}
		return one
	}
	f.guess("links between packages by their memory's bandwidth")
	return linkShare * math.Min(here, there) * math.Sqrt(2/math.Max(2, float64(len(f.m.Packages)))) // 5
}
