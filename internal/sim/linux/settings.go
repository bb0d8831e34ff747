// SPDX-License-Identifier: Apache-2.0

package linux

import "homenode/internal/sim/detmath"

// SetCPUs is a write to cpuset.cpus. Threads, pinned ones too, leave CPUs that they may no
// longer use, at once (cpuset_update_tasks_cpumask, __set_cpus_allowed_ptr: any of the new
// CPUs). New CPUs are found by balancing. An empty set changes nothing: an empty file means
// the parent's CPUs.
func (h *Host) SetCPUs(g *Group, cpus []float64) {
	if detmath.Sum(cpus) <= 0 {
		return
	}
	s := h.prepare()
	h.catchUp(g)
	copy(g.CPUs, cpus)
	homeless, all, to := 0.0, detmath.Sum(cpus), s.a
	for k := range to {
		to[k] = g.On[k]
		if cpus[k] <= 0 {
			homeless += g.On[k]
			to[k] = 0
		}
	}
	if homeless <= 0 {
		return
	}
	for k := range to {
		to[k] += homeless * (cpus[k] / all)
	}
	g.put(to)
}

// put moves threads, and their rows, to the nodes in to.
func (g *Group) put(to []float64) {
	g.rearrange(to)
	copy(g.On, to)
	g.settle()
}

// SetMems is a write to cpuset.mems of cgroup v2. Pages elsewhere are moved inside the
// write (cpuset_migrate_mm), and the group stands still meanwhile. Page cache that no
// process maps stays where it is, as no mm has it.
//
// Several new nodes get pages in proportion to their free memory; the kernel maps old nodes
// to new ones by number (do_migrate_pages, node_remap).
func (h *Host) SetMems(g *Group, mems []bool) Moved {
	any := false
	for _, in := range mems {
		any = any || in
	}
	if !any {
		return Moved{}
	}
	copy(g.Mems, mems)
	moved := h.Move(g, nil, mems, 0, false)
	moved.Stalled = moved.CPU
	return moved
}

// Move is move_pages from some nodes (nil: all) to others, at most budget pages (0: no
// limit); with cache, also of files that no process maps. Nodes outside the cpuset are no
// targets (do_pages_move: EACCES).
//
//  1. Count what can move, and the room down to the min watermark. Page cache makes way on
//     the targets, as new pages are requested with __GFP_DIRECT_RECLAIM
//     (alloc_migration_target: GFP_HIGHUSER_MOVABLE, one node only).
//  2. All kinds and source nodes give in proportion.
//  3. Targets get in proportion to their room.
func (h *Host) Move(g *Group, from, to []bool, budget float64, cache bool) Moved {
	s := h.prepare()
	total, room := h.Movable(g, from, to, cache, s.b, s.a) // 1
	wanted := total
	if budget > 0 {
		wanted = min(total, budget)
	}
	pages := min(wanted, room)
	moved := Moved{Pages: max(pages, 0), Left: total - max(pages, 0), NoRoom: wanted - max(pages, 0)}
	if pages <= 0 {
		return moved
	}
	for k := range h.Nodes {
		part := pages * (s.a[k] / room)
		if part > 0 {
			h.drop(k, part-max(s.free[k]-s.min[k], 0), 0)
		}
	}
	h.bringAll()
	s.book(g, -1)
	g.carry(s, pages/total, room, cache)
	s.book(g, 1)
	moved.CPU = pages * h.Settings.moveSeconds()
	return moved
}

// roomOn is how many pages fit on a node.
func (h *Host) roomOn(node int) float64 {
	room := h.scratch.free[node] - h.scratch.min[node]
	if h.Settings.Reclaim {
		room += h.scratch.cache[node]
	}
	return max(room, 0)
}

// movable is how many of a node's pages can be moved.
func (g *Group) movable(node int, cache bool) float64 {
	pages := g.Memory.on(node)
	if !cache {
		pages -= g.Memory.Cache[node]
	}
	return max(pages, 0)
}

// carry is steps 2 and 3 of Move: a part of the pages on the nodes with b > 0 goes to the
// nodes with a > 0.
func (g *Group) carry(s *scratch, part, room float64, cache bool) {
	n := len(s.a)
	for t := range n {
		carryList(g.Memory.Private[t*n:t*n+n], s, part, room)
	}
	carryList(g.Memory.Shared, s, part, room)
	carryList(g.Memory.Mapped, s, part, room)
	if cache {
		carryList(g.Memory.Cache, s, part, room)
	}
}

func carryList(list []float64, s *scratch, part, room float64) {
	taken := 0.0
	for k := range list {
		if s.b[k] > 0 {
			pages := part * list[k]
			list[k] -= pages
			s.free[k] += pages
			taken += pages
		}
	}
	for k := range list {
		pages := taken * (s.a[k] / room)
		list[k] += pages
		s.free[k] -= pages
	}
}
