// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Mover is the thread that moves a machine's pages in a simulated world: how long moves
// take, and what they cost. Both populations (here, sim/threadworld) have it:
//
//  1. It moves one page after the other and one move after the other, on the targets'
//     CPUs, or where those have none, on any. Before the memory system is solved, a move
//     plans what it could do in its turn on an idle machine (Turn, Plan).
//  2. Copying is a load like others: lines are read where the page was and written where
//     it goes. So others slow it down, and it them (Load).
//  3. What it was served is moved, and paid for (Served, Did, Take).
//  4. A call moves as many pages as fit into MaxStall, and they are out of reach for as
//     long as it takes; threads that access one of them stand still. Accesses go to all
//     pages alike, so of a call's time a workload loses what share of its pages is in it:
//     in all, moving a whole workload costs it about one call (Stands).
//
// A step:
//
//	Turn ─▶ Plan ─▶ Take ─▶ Load ─▶ memsys ─▶ Served ─▶ Did ─▶ Stands ─▶ Look
//
// Not for: which pages go where (sim/linux), or whose time is taken (the populations).
type Mover struct {
	machine machine.Machine
	system  *memsys.System
	host    *linux.Host
	mems    set.NodeSet // nodes with memory
	nodes   []node      // parallel to the machine's
}

type node struct {
	cpus   float64
	domain int     // its first domain in memsys.System; -1: none
	owed   float64 // CPU seconds still to be taken from its CPUs
}

// NewMover is the mover of a host on this machine.
func NewMover(m machine.Machine, system *memsys.System, host *linux.Host) Mover {
	x := Mover{machine: m, system: system, host: host, mems: m.NodesWithMemory(), nodes: make([]node, len(m.Nodes))}
	for n := range x.nodes {
		x.nodes[n] = node{cpus: float64(m.Nodes[n].CPUs.Len()), domain: -1}
	}
	for d := len(system.Domains) - 1; d >= 0; d-- {
		x.nodes[system.Domains[d].Node].domain = d
	}
	return x
}

// runners is where moves to these nodes run, as shares: on their CPUs or, where they have
// none, on all.
func (x *Mover) runners(nodes set.NodeSet) []float64 {
	if x.machine.CPUsOf(nodes).IsEmpty() {
		nodes = x.machine.NodesWithCPUs()
	}
	by, all := make([]float64, len(x.nodes)), 0.0
	for n := range x.nodes {
		if k := &x.nodes[n]; nodes.Has(x.machine.Nodes[n].ID) && k.domain >= 0 {
			by[n] = k.cpus
			all += k.cpus
		}
	}
	for n := range by {
		by[n] /= max(all, 1)
	}
	return by
}

// spend records CPU time of a move, to be taken in this step and later ones.
func (x *Mover) spend(m *Move, cpu float64) {
	for n, by := range m.by {
		x.nodes[n].owed += cpu * by
	}
}

// Take is the time taken from a node's CPUs in a step; the mover is one thread.
func (x *Mover) Take(n int, dt float64) (seconds float64) {
	k := &x.nodes[n]
	seconds = max(0, min(k.owed, dt*min(1, k.cpus)))
	k.owed -= seconds
	return seconds
}

// SetMems writes a group's cpuset.mems. Pages move inside the write, as fast as an idle
// machine can. It returns how many seconds that takes.
func (x *Mover) SetMems(g *linux.Group, nodes set.NodeSet) (seconds float64) {
	m := x.Begin(g, action.Step{Nodes: nodes})
	copy(g.Mems, m.to)
	page := 0.0
	if room := x.Look(m); m.left > 0 && room > 0 {
		page = x.price(m, room)
	}
	done := x.host.SetMems(g, m.to)
	seconds = done.Pages * page
	x.spend(m, seconds)
	return seconds
}
