// SPDX-License-Identifier: Apache-2.0

package linux

import "homenode/internal/sim/detmath"

// Touch gives a group new pages of a kind, first touched by its threads where they run now,
// as its policy and cpuset allow. It returns how many found no room.
//
// mm/mempolicy.c, mm/page_alloc.c:
//
//  1. Each node's threads touch their part. A page comes from the first allowed node in
//     the zonelist of the toucher (bind: policy_nodemask), or from all nodes of an interleave
//     in turn. cpuset.mems narrows both (__cpuset_node_allowed); a policy left without nodes
//     gets all of cpuset.mems (mpol_rebind_policy).
//  2. get_page_from_freelist takes nodes down to their low watermark, one after the
//     other in the zonelist. Without Fallback, only the first.
//  3. Then down to min (ALLOC_WMARK_MIN), after waking kswapd.
//  4. Then by dropping page cache (direct reclaim), if Reclaim.
//  5. The rest is refused: a case for the OOM killer.
func (h *Host) Touch(g *Group, k Kind, pages float64) (refused float64) {
	if pages <= 0 || g.Threads <= 0 {
		return max(pages, 0)
	}
	for _, t := range h.prepareOne(g).order { // 1
		if part := pages * (g.On[t] / g.Threads); part > 0 {
			refused += h.touchFrom(g, k, t, part)
		}
	}
	return refused
}

// list is the pages of a kind by node; for private pages, those of threads on node t.
func (g *Group) list(k Kind, t int) []float64 {
	n := len(g.On)
	switch k {
	case Private:
		return g.Memory.Private[t*n : t*n+n]
	case Shared:
		return g.Memory.Shared
	case Mapped:
		return g.Memory.Mapped
	default:
		return g.Memory.Cache
	}
}

// touchFrom is what threads on node t touch.
func (h *Host) touchFrom(g *Group, k Kind, t int, pages float64) (refused float64) {
	list := g.list(k, t)
	if g.Policy.Mode != Interleave {
		return h.walk(g, k, list, t, -1, pages)
	}
	nodes := 0.0
	for m := range list {
		if h.allowed(g, m) {
			nodes++
		}
	}
	each := pages / max(nodes, 1)
	for _, m := range h.scratch.order {
		if h.allowed(g, m) {
			refused += h.walk(g, k, list, m, m, each)
		}
	}
	return refused
}

// allowed reports whether policy and cpuset let a group have pages of a node.
func (h *Host) allowed(g *Group, node int) bool {
	if g.Policy.Mode != Bind && g.Policy.Mode != Interleave {
		return g.Mems[node]
	}
	for m, in := range g.Policy.Nodes {
		if in && g.Mems[m] {
			return g.Mems[node] && g.Policy.Nodes[node]
		}
	}
	return g.Mems[node]
}

// walk is steps 2 to 5 of Touch along the zonelist of a node. An interleave falls back to
// all of cpuset.mems, as its preferred node is no mask (policy_nodemask).
func (h *Host) walk(g *Group, kind Kind, list []float64, from, preferred int, pages float64) float64 {
	s := &h.scratch
	for _, marks := range [...][]float64{s.low, s.min} { // 2, 3
		for _, m := range h.Zonelist[from] {
			if !h.usable(g, m, preferred) {
				continue
			}
			take := max(min(pages, s.free[m]-marks[m]), 0)
			s.take(kind, list, m, take)
			if pages -= take; pages <= 0 {
				return 0
			}
			s.kswapd[m] = s.kswapd[m] || h.Settings.Reclaim
			if !h.Settings.Fallback {
				break
			}
		}
	}
	if !h.Settings.Reclaim {
		return pages
	}
	for _, m := range h.Zonelist[from] { // 4
		if !h.usable(g, m, preferred) {
			continue
		}
		h.drop(m, pages, mappedWeight)
		s.bring(g)
		take := max(min(pages, s.free[m]-s.min[m]), 0)
		s.take(kind, list, m, take)
		if pages -= take; pages <= 0 || !h.Settings.Fallback {
			break
		}
	}
	return pages // 5
}

// take puts free pages of a node on a list.
func (s *scratch) take(kind Kind, list []float64, node int, pages float64) {
	list[node] += pages
	s.free[node] -= pages
	switch kind {
	case Mapped:
		s.mapped[node] += pages
	case Cache:
		s.cache[node] += pages
	}
}

func (h *Host) usable(g *Group, node, preferred int) bool {
	if h.Nodes[node].Pages <= 0 {
		return false
	}
	if preferred >= 0 {
		return g.Mems[node]
	}
	return h.allowed(g, node)
}

// Release takes pages of a kind back, from all nodes in proportion.
func (h *Host) Release(g *Group, k Kind, pages float64) {
	if pages <= 0 {
		return
	}
	s := h.prepareOne(g)
	list := g.list(k, 0)
	if k == Private {
		list = g.Memory.Private
	}
	all := detmath.Sum(list)
	if all <= 0 {
		return
	}
	part := min(pages/all, 1)
	if k >= Mapped {
		s.book(g, -1)
	}
	for i := range list {
		back := part * list[i]
		list[i] -= back
		s.free[i%len(s.free)] += back
	}
	if k >= Mapped {
		s.book(g, 1)
	}
}
