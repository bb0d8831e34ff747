// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/action"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Move is a move of pages under way, until the next window.
type Move struct {
	step         action.Step
	group        *linux.Group
	from, to     []bool
	by           []float64 // share of the mover's work on each node's CPUs
	gives, takes []float64 // pages by node that could leave, and arrive
	home         []float64 // distribution of the mover's accesses
	budget       float64   // pages that it may still move
	pace         float64   // seconds per page at the requested rate; 0: any
	regions      [1]memsys.Region
	work         memsys.Work // per page

	// Its part of a step of time.
	Pages   float64 // pages that it requests to move
	Seconds float64 // seconds of the mover's time, on an idle machine
	paid    float64 // CPU seconds, on an idle machine
	first   int     // index of its first load
	loads   int

	moved, cpu float64 // pages, CPU seconds: sums
	took       float64 // seconds of its turns
	left       float64 // pages that could still be moved
	begun      bool
	full       bool // there is no room for them
	over       bool // nothing more can be moved, or the budget is used up
}

const (
	// moveSeconds is the CPU time of moving a byte on an idle machine: MAO's 0.65 s/GB, as
	// in linux. Where copying alone takes longer than that, it is the time of copying.
	moveSeconds = 0.64e-9
	// kernelCycles is the least part of a page's move that is not copying. A choice.
	kernelCycles = 1000
	// copies is how many lines of the one stream of a copy are outstanding at once, as far as
	// its core has buffers for them.
	copies = 8
	// lines is the number of lines of a page.
	lines = linux.PageBytes / memsys.LineBytes
	// callPages is the pages of a call without MaxStall (kernel/migrate: mostPages).
	callPages = 4096
	// halfPage: less than this cannot be moved.
	halfPage = 0.5
)

// Begin makes a move of a group's pages, with nothing done yet.
func (x *Mover) Begin(g *linux.Group, s action.Step) *Move {
	n := len(x.nodes)
	room := make([]float64, 3*n)
	m := &Move{
		step: s, group: g, to: indexes(x.machine, s.Nodes), from: indexes(x.machine, x.mems.Minus(s.Nodes)), by: x.runners(s.Nodes),
		gives: room[:n:n], takes: room[n : 2*n : 2*n], home: room[2*n:], budget: math.Inf(1),
	}
	if !s.From.IsEmpty() {
		m.from = indexes(x.machine, s.From.Minus(s.Nodes))
	}
	if s.Budget > 0 {
		m.budget = float64(s.Budget) / linux.PageBytes
	}
	if s.Rate > 0 {
		m.pace = linux.PageBytes / float64(s.Rate)
	}
	return m
}

// Turn reports whether the mover, with this many seconds left of the step, works on this
// move. Its workload may be gone.
func (m *Move) Turn(left float64, here bool) bool {
	m.Pages, m.Seconds, m.paid = 0, 0, 0
	if m.over || left <= 0 {
		return false
	}
	m.over, m.begun = !here, m.begun || here
	return here
}

// Plan plans for at most this many seconds, at the move's rate, and returns how many it
// takes.
func (x *Mover) Plan(m *Move, seconds float64) float64 {
	room := x.Look(m)
	if m.over {
		return 0
	}
	idle := x.price(m, room)
	each := max(idle, m.pace)
	m.Pages = min(m.budget, m.left, room, seconds/each)
	m.Seconds, m.paid = m.Pages*each, m.Pages*idle
	x.spend(m, m.paid)
	m.took += m.Seconds
	return m.Seconds
}

// Look finds what there is to move, what room there is, and whether the move is over. Where
// there is no room, the rest has failed: a mover gets its budget back for refused pages,
// and tries them all (kernel/migrate, settle).
func (x *Mover) Look(m *Move) (room float64) {
	m.left, room = x.host.Movable(m.group, m.from, m.to, m.step.PageCache, m.gives, m.takes)
	m.over = m.left < halfPage || m.budget < halfPage
	if !m.over && room < halfPage {
		m.over, m.full = true, true
	}
	return room
}

// price sets the memory accesses of moving a page, and returns its seconds on an idle
// machine: MoveSeconds, of which copying is a part, or copying and kernelCycles.
func (x *Mover) price(m *Move, room float64) (seconds float64) {
	stall := 0.0
	for n := range m.home {
		m.home[n] = m.gives[n]/(2*m.left) + m.takes[n]/(2*room)
	}
	for c, by := range m.by {
		for n, share := range m.home {
			stall += by * share * x.system.Latency[c][n]
		}
	}
	m.regions[0] = memsys.Region{Bytes: 1 << 40, Shared: true, Accesses: 2 * lines, Parallelism: copies, Stream: true}
	stall = stall * (2 * lines / x.system.Outstanding(&m.regions[0]))
	bytes := x.host.Settings.MoveSeconds
	if bytes == 0 {
		bytes = moveSeconds
	}
	own := max(kernelCycles, bytes*linux.PageBytes*x.system.Hz-stall)
	m.work = memsys.Work{Cycles: own, Instructions: own, Regions: m.regions[:]}
	return (own + stall) / x.system.Hz
}

// Load appends the loads of the move: one for each node that the mover runs on, in its
// first domain. Together with those of all moves, whose Seconds sum to turns, they are one
// CPU. Workload numbers below owner belong to others. As many lines are written as read,
// and writes are assumed to go the way of reads: the kernel copies without reading what it
// overwrites.
func (x *Mover) Load(m *Move, loads []memsys.Load, owner int, turns, dt float64) []memsys.Load {
	m.first, m.loads = len(loads), 0
	if m.Pages <= 0 {
		return loads
	}
	for n, by := range m.by {
		if by > 0 {
			cpus := by * m.Seconds / turns
			loads = append(loads, memsys.Load{
				Workload: owner + len(loads), Domain: x.nodes[n].domain, CPUs: cpus, Threads: cpus,
				Ops: m.Pages / dt * by, Work: &m.work, Home: m.home, Slow: 1,
			})
			m.loads++
		}
	}
	return loads
}

// Served returns its loads, as solved.
func (m *Move) Served(all []memsys.LoadResult) []memsys.LoadResult {
	return all[m.first : m.first+m.loads]
}

// Did records moved pages, and the CPU seconds that they took.
func (x *Mover) Did(m *Move, pages, cpu float64) {
	x.spend(m, cpu-m.paid)
	d := x.host.Move(m.group, m.from, m.to, pages, m.step.PageCache)
	m.moved += d.Pages
	m.cpu += cpu
	m.budget -= d.Pages
}

// Stands is how long its workload stands still, in total and per call, for calls of this
// many seconds, with each seconds per page.
func (m *Move) Stands(seconds, each float64) (still, call float64) {
	batch := float64(callPages)
	if m.step.MaxStall > 0 {
		batch = max(1, min(batch, m.step.MaxStall.Seconds()/each))
	}
	mem := &m.group.Memory
	held := detmath.Sum(mem.Private) + detmath.Sum(mem.Shared) + detmath.Sum(mem.Mapped) + detmath.Sum(mem.Cache)
	share := min(1, batch/max(held, 1))
	return seconds * share, min(batch, held) * each
}

// Told reports that the move has an outcome to report: it is over, or has moved a page.
func (m *Move) Told() bool { return m.begun && (m.over || m.moved >= halfPage) }

// Outcome is the outcome of the move; its workload may be gone.
func (m *Move) Outcome(here bool) action.Outcome {
	o := action.Outcome{Step: m.step, Moved: linux.BytesOf(m.moved), CPUSeconds: m.cpu, Took: time.Duration(math.Round(m.took * 1e9))}
	if m.full {
		o.Failed = linux.BytesOf(m.left)
	}
	if !here {
		o.Status, o.Detail = action.Gone, fmt.Sprintf("act on %s: no such file or directory (gone)", m.group.ID)
		return o
	}
	o.Detail = fmt.Sprintf("moved %v, %v of CPU time", o.Moved, time.Duration(math.Round(o.CPUSeconds*1e9)).Round(time.Microsecond))
	if o.Failed > 0 {
		o.Detail += fmt.Sprintf("; not moved: %v ENOMEM", o.Failed)
	}
	o.Status = action.Done
	if !m.full && m.left >= halfPage {
		o.Status = action.InProgress
		o.Detail += fmt.Sprintf("; stopped: %v is left", linux.BytesOf(m.left))
	}
	return o
}
