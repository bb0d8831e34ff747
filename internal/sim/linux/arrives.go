// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"slices"

	"homenode/internal/sim/detmath"
)

// together is the share of a node's CPUs that may be busy before a NUMA domain balances:
// imb_numa_nr is an eighth of a node with one LLC since Linux 6.0, a quarter before, and at
// least one thread (sched/topology.c, build_sched_domains).
const together = 0.125

// mayBeTogether is the same in CPUs.
func mayBeTogether(cpus float64) float64 { return max(together*cpus, 1) }

// Arrive places a new group's threads (sched_exec, select_task_rq_fair) and adds it. A
// group whose On already sums to its Threads stays where it is.
//
//  1. exec goes to a random node, more likely the more idle CPUs it has.
//  2. Threads stay there until an eighth of its CPUs is busy (find_idlest_group); the
//     first thread does in any case.
//  3. The rest goes where CPUs are idle; where none are, in proportion to CPUs.
func (h *Host) Arrive(g *Group) {
	g.setUp(h)
	s := h.prepare()
	if math.Abs(detmath.Sum(g.On)-g.Threads) > 1e-9*g.Threads {
		h.place(g)
	}
	g.settle()
	h.Groups = append(h.Groups, g)
	for n := range s.free {
		s.free[n] -= g.Memory.on(n)
		s.idle[n] = idleOf(s.idle[n]-g.Used[n], h.Nodes[n].CPUs)
	}
	s.book(g, 1)
}

// setUp allocates all of a group's lists.
func (g *Group) setUp(h *Host) {
	n := len(h.Nodes)
	m := &g.Memory
	for _, list := range []*[]float64{&g.On, &g.Used, &m.Shared, &m.Mapped, &m.Cache} {
		*list = full(*list, n)
	}
	m.Private = full(m.Private, n*n)
	g.Scan.Marked = full(g.Scan.Marked, n*n+n)
	g.wander = wander{base: full(nil, n), off: full(nil, n), last: full(nil, n), aim: full(nil, n)}
	g.pass.cpus = full(nil, n)
	g.keepAll()
	if len(g.CPUs) != n || detmath.Sum(g.CPUs) <= 0 {
		g.CPUs = full(nil, n)
		for i := range h.Nodes {
			g.CPUs[i] = h.Nodes[i].CPUs
		}
	}
	if len(g.Mems) != n || !slices.Contains(g.Mems, true) {
		g.Mems = slices.Repeat([]bool{true}, n)
	}
}

func full(list []float64, n int) []float64 {
	if len(list) == n {
		return list
	}
	return make([]float64, n)
}

// place is steps 1 to 3 of Arrive.
func (h *Host) place(g *Group) {
	idle := h.idle(g)
	clear(g.On)
	left := g.Threads
	if !g.Pinned && h.Settings.LoadBalance {
		first := g.chance(h.scratch.order, idle) // 1
		busy := g.CPUs[first] - idle[first]
		g.On[first] = min(left, max(mayBeTogether(h.Nodes[first].CPUs)-busy, 1)) // 2
		left -= g.On[first]
		idle[first] = max(idle[first]-g.On[first], 0)
	}
	all := detmath.Sum(idle) // 3
	if all <= 0 || g.Pinned {
		copy(idle, g.CPUs)
		all = detmath.Sum(idle)
	}
	for n := range g.On {
		g.On[n] += left * (idle[n] / all)
	}
}

// idle is how many of a group's CPUs were idle by node in the last Run; all of them if none
// was.
func (h *Host) idle(g *Group) []float64 {
	idle := h.scratch.a
	h.spare(idle)
	for n := range idle {
		idle[n] = min(idle[n], g.CPUs[n])
	}
	if detmath.Sum(idle) <= 0 {
		copy(idle, g.CPUs)
	}
	return idle
}

// spare is what was idle of each node's CPUs in the last Run. Nearly nothing counts as
// nothing, as it depends on the order of sums.
func (h *Host) spare(out []float64) {
	s := &h.scratch
	if !s.idleKnown {
		s.idleKnown = true
		for n := range s.idle {
			s.idle[n] = h.Nodes[n].CPUs
			for _, g := range h.Groups {
				s.idle[n] -= g.Used[n]
			}
			s.idle[n] = idleOf(s.idle[n], h.Nodes[n].CPUs)
		}
	}
	copy(out, s.idle)
}

func idleOf(left, cpus float64) float64 {
	if left < 1e-9*cpus {
		return 0
	}
	return left
}

// chance picks a node with a probability by weight.
func (g *Group) chance(order []int, weight []float64) int {
	x := g.Random.Float() * detmath.Sum(weight)
	last := order[0]
	for _, n := range order {
		if weight[n] <= 0 {
			continue
		}
		if last = n; x < weight[n] {
			break
		}
		x -= weight[n]
	}
	return last
}

// Depart frees what a group has and removes it.
func (h *Host) Depart(g *Group) {
	i := slices.Index(h.Groups, g)
	if i < 0 {
		return
	}
	h.bringAll()
	h.Groups = slices.Delete(h.Groups, i, i+1)
	clear(g.Memory.Private)
	clear(g.Memory.Shared)
	clear(g.Memory.Mapped)
	clear(g.Memory.Cache)
	clear(g.Used)
	h.scratch.counted, h.scratch.idleKnown = false, false
}
