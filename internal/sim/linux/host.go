// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"cmp"
	"math"
	"slices"
)

// scratch is a host's working memory, kept between calls.
type scratch struct {
	order []int     // nodes by their properties, not by number
	free  []float64 // pages, since the last count
	// min, low and high are the watermarks of each node in pages.
	min, low, high []float64
	kswapd         []bool // awake
	asked          []float64
	want           []float64 // by group and node: CPUs
	aim            []float64 // by group and node: share of its threads
	load, use      []float64
	pull           []float64
	flow           []float64 // pages: private to row and from node, then shared from and to node
	a, b           []float64
	open           []int
	weights        []float64 // by group, on the node being filled
	counted        bool
	// Sums over groups by node: page cache that no process maps, and mapped files; and the
	// idle CPUs, if idleKnown.
	cache, mapped, idle []float64
	idleKnown           bool
	// kept[kind] is the share of each node's page cache that dropping has left since all
	// groups' lists were up to date. behind: some list is not up to date.
	kept   [2][]float64
	behind bool
}

// Watermarks of a zone, mm/page_alloc.c: init_per_zone_wmark_min and
// __setup_per_zone_wmarks.
const (
	minFreeFactor = 16 // min_free_kbytes is √(16 × memory in KiB)
	minFreeLeast  = 128
	minFreeMost   = 262144
	scaleFactor   = 10.0 / 10000 // watermark_scale_factor, of the node's memory
)

// prepare allocates for n nodes and the present groups, and brings all up to date.
func (h *Host) prepare() *scratch {
	s := h.prepareOne(nil)
	h.bringAll()
	return s
}

// prepareOne brings one group up to date only.
func (h *Host) prepareOne(g *Group) *scratch {
	s, n := &h.scratch, len(h.Nodes)
	if len(s.order) != n {
		s.setUp(h)
	}
	size := n * len(h.Groups)
	s.want, s.aim = room(s.want, size), room(s.aim, size)
	s.asked = room(s.asked, len(h.Groups))
	if !s.counted {
		h.bringAll()
		h.count()
	}
	if g != nil && s.behind {
		s.bring(g)
	}
	return s
}

// bring removes dropped pages from a group's page cache.
func (s *scratch) bring(g *Group) {
	for kind, list := range [2][]float64{g.Memory.Cache, g.Memory.Mapped} {
		for k, kept := range s.kept[kind] {
			if seen := &g.kept[kind][k]; *seen != kept {
				list[k] *= kept / *seen
				*seen = kept
			}
		}
	}
}

// bringAll does so for all groups.
func (h *Host) bringAll() {
	s := &h.scratch
	if !s.behind {
		return
	}
	s.behind = false
	for _, g := range h.Groups {
		s.bring(g)
		g.keepAll()
	}
	for kind := range s.kept {
		setAll(s.kept[kind], 1)
	}
}

// keepAll marks a group as up to date.
func (g *Group) keepAll() {
	for kind := range g.kept {
		g.kept[kind] = full(g.kept[kind], len(g.On))
		setAll(g.kept[kind], 1)
	}
}

func setAll(list []float64, x float64) {
	for i := range list {
		list[i] = x
	}
}

func (s *scratch) setUp(h *Host) {
	n := len(h.Nodes)
	for _, list := range []*[]float64{&s.free, &s.min, &s.low, &s.high, &s.load, &s.use, &s.pull, &s.a, &s.b,
		&s.cache, &s.mapped, &s.idle, &s.kept[0], &s.kept[1]} {
		*list = make([]float64, n)
	}
	s.flow = make([]float64, 2*n*n)
	setAll(s.kept[0], 1)
	setAll(s.kept[1], 1)
	s.kswapd, s.counted, s.idleKnown, s.behind = make([]bool, n), false, false, false
	s.watermarks(h.Nodes)
	s.order = make([]int, n)
	for i := range s.order {
		s.order[i] = i
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		x, y := h.Nodes[a], h.Nodes[b]
		return cmp.Or(cmp.Compare(x.Pages, y.Pages), cmp.Compare(x.CPUs, y.CPUs), cmp.Compare(x.Other, y.Other))
	})
}

// watermarks are the kernel's, with a node treated as one zone:
//
//  1. min_free_kbytes is √(16 × KiB of memory), 128 KiB to 256 MiB, for all nodes
//     together; each has its part by size.
//  2. low and high are min plus once and twice the larger of a quarter of min and
//     0.1 % of the node.
func (s *scratch) watermarks(nodes []Node) {
	all := 0.0
	for _, node := range nodes {
		all += node.Pages
	}
	kib := math.Sqrt(minFreeFactor * all * (PageBytes / 1024)) // 1
	least := min(max(kib, minFreeLeast), minFreeMost) / (PageBytes / 1024)
	for i, node := range nodes {
		s.min[i] = least * node.Pages / max(all, 1)
		gap := max(s.min[i]/4, node.Pages*scaleFactor) // 2
		s.low[i], s.high[i] = s.min[i]+gap, s.min[i]+2*gap
	}
}

// room is a slice of length n that reuses list's memory if it is large enough. Its contents
// are undefined.
func room(list []float64, n int) []float64 {
	if cap(list) < n {
		return make([]float64, n, 2*n)
	}
	return list[:n]
}

// count computes what is free. Between two counts (each Run has one) the host's methods
// keep track; the next count notices changes of Memory by the caller.
func (h *Host) count() {
	s := &h.scratch
	for n := range h.Nodes {
		s.free[n] = h.Nodes[n].Pages - h.Nodes[n].Other
	}
	clear(s.cache)
	clear(s.mapped)
	for _, g := range h.Groups {
		for n := range g.Memory.Shared {
			s.free[n] -= g.Memory.on(n)
		}
		s.book(g, 1)
	}
	s.counted = true
}

// book adds a group's page cache to the sums, or subtracts it (sign -1).
func (s *scratch) book(g *Group, sign float64) {
	for n := range s.cache {
		s.cache[n] = max(s.cache[n]+sign*g.Memory.Cache[n], 0)
		s.mapped[n] = max(s.mapped[n]+sign*g.Memory.Mapped[n], 0)
	}
}

// on is a group's pages on a node.
func (m *Memory) on(n int) float64 {
	sum, nodes := 0.0, len(m.Shared)
	for i := n; i < len(m.Private); i += nodes {
		sum += m.Private[i]
	}
	return sum + m.Shared[n] + m.Mapped[n] + m.Cache[n]
}

// Free is the number of free pages on a node.
func (h *Host) Free(node int) float64 {
	h.bringAll()
	free := h.Nodes[node].Pages - h.Nodes[node].Other
	for _, g := range h.Groups {
		free -= g.Memory.on(node)
	}
	return max(free, 0)
}

// moveSeconds is the CPU time of moving a page: MAO moved 1 GB in 0.64 s.
func (s *Settings) moveSeconds() float64 {
	if s.MoveSeconds > 0 {
		return s.MoveSeconds * PageBytes
	}
	return 0.64e-9 * PageBytes
}
