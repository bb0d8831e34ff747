// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Pages are moved as in package sim (its moves.go has the numbers):
//
//  1. One thread moves, one move after the other, on the targets' CPUs. It plans what
//     it could do in its turn on an idle machine.
//  2. Copying is a load of the memory system.
//  3. What it was served is moved, and paid for: of the time of all of the targets' CPUs
//     alike.
//  4. Pages of a call are out of reach for as long as it takes.

// move is a move of pages under way, until the next window.
type move struct {
	step             action.Step
	wl               *workload
	from, to         []bool
	by               []float64 // share of the mover's work on each node's CPUs
	gives, takes     []float64 // pages by node that could go, and come
	home             []float64 // of the mover's accesses
	budget           float64   // pages that it may still move
	pace             float64   // seconds that a page takes at the rate asked for; 0: any
	regions          [1]memsys.Region
	work             memsys.Work // of a page
	now              turn
	pages, cpu, left float64
	begun, full      bool
	over             bool
}

// turn is a move's part of a step of time.
type turn struct {
	pages, seconds, paid float64
	first                int // of its loads
}

// These are package sim's.
const (
	moveSeconds  = 0.64e-9
	kernelCycles = 1000
	copies       = 8
	lines        = linux.PageBytes / memsys.LineBytes
	callPages    = 4096
	halfPage     = 0.5
)

func (w *World) newMove(wl *workload, s action.Step) *move {
	n := len(w.nodes)
	room := make([]float64, 3*n)
	m := &move{
		step: s, wl: wl, to: w.indexes(s.Nodes), from: w.indexes(w.mems.Minus(s.Nodes)), by: w.runners(s.Nodes),
		gives: room[:n:n], takes: room[n : 2*n : 2*n], home: room[2*n:], budget: math.Inf(1),
	}
	if !s.From.IsEmpty() {
		m.from = w.indexes(s.From.Minus(s.Nodes))
	}
	if s.Budget > 0 {
		m.budget = float64(s.Budget) / linux.PageBytes
	}
	if s.Rate > 0 {
		m.pace = linux.PageBytes / float64(s.Rate)
	}
	return m
}

// runners is where moves to these nodes run, as shares: on their CPUs, or where they
// have none, on all.
func (w *World) runners(nodes set.NodeSet) []float64 {
	if w.c.Machine.CPUsOf(nodes).IsEmpty() {
		nodes = w.c.Machine.NodesWithCPUs()
	}
	by, all := make([]float64, len(w.nodes)), 0.0
	for n := range w.nodes {
		if cpus := len(w.nodes[n].cpus); nodes.Has(w.nodes[n].id) && cpus > 0 {
			by[n] = float64(cpus)
			all += by[n]
		}
	}
	for n := range by {
		by[n] /= max(all, 1)
	}
	return by
}

// planMoves is number 1: one after the other, each at its rate.
func (w *World) planMoves(dt float64) {
	left, traffic := dt, 0.0
	for _, m := range w.moves {
		m.now = turn{first: m.now.first}
		switch {
		case m.over || left <= 0:
		case !m.wl.here():
			m.over = true
		default:
			m.begun = true
			left -= w.plan(m, left)
			traffic += m.now.pages / dt
		}
	}
	if math.Abs(traffic-w.traffic) > 0.01*max(traffic, w.traffic) {
		w.changed = true
	}
}

// plan is for at most so many seconds, and returns how many it takes.
func (w *World) plan(m *move, seconds float64) float64 {
	w.open(m.wl)
	room := w.movable(m)
	if m.over {
		return 0
	}
	idle := w.price(m, room)
	each := max(idle, m.pace)
	pages := min(m.budget, m.left, room, seconds/each)
	m.now.pages, m.now.seconds, m.now.paid = pages, float64(pages*each), float64(pages*idle)
	w.spend(m, m.now.paid)
	return m.now.seconds
}

// movable finds what there is to move of an open workload, what room there is, and
// whether that is the end.
func (w *World) movable(m *move) (room float64) {
	m.left, room = w.host.Movable(&m.wl.group, m.from, m.to, m.step.PageCache, m.gives, m.takes)
	m.over = m.left < halfPage || m.budget < halfPage
	if !m.over && room < halfPage {
		m.over, m.full = true, true
	}
	return room
}

// price sets what moving a page is for the memory system, and returns its seconds on an
// idle machine.
func (w *World) price(m *move, room float64) (seconds float64) {
	stall := 0.0
	for n := range m.home {
		m.home[n] = m.gives[n]/(2*m.left) + m.takes[n]/(2*room)
	}
	for c, by := range m.by {
		for n, share := range m.home {
			stall += float64(by * share * w.c.System.Latency[c][n])
		}
	}
	stall = float64(stall * (2 * lines / float64(copies)))
	bytes := w.c.Linux.MoveSeconds
	if bytes == 0 {
		bytes = moveSeconds
	}
	own := max(kernelCycles, float64(bytes*linux.PageBytes*w.c.System.Hz)-stall)
	m.regions[0] = memsys.Region{Bytes: 1 << 40, Shared: true, Accesses: 2 * lines, Parallelism: copies, Stream: true}
	m.work = memsys.Work{Cycles: own, Instructions: own, Regions: m.regions[:]}
	return (own + stall) / w.c.System.Hz
}

// spend is CPU time of a mover, to be taken in this step and those to come.
func (w *World) spend(m *move, cpu float64) {
	for n, by := range m.by {
		w.mover[n] += float64(cpu * by)
	}
}

// takeMovers takes the CPU time of movers from the nodes' CPUs; a mover is one thread.
func (w *World) takeMovers(dt float64) {
	for n := range w.nodes {
		cpus := float64(len(w.nodes[n].cpus))
		if cpus == 0 {
			continue
		}
		taken := max(0, min(w.mover[n], float64(dt*min(1, cpus))))
		w.mover[n] -= taken
		w.busy[n] += taken
		room := 1 - taken/dt/cpus
		first := &w.cpus[w.nodes[n].cpus[0]]
		if math.Abs(room-first.room) <= noticed && (taken > 0 || first.room == 1) {
			continue
		}
		for _, c := range w.nodes[n].cpus {
			w.cpus[c].room = room
		}
		w.stale = true
	}
}

// loadMovers is number 2: one load a node that the mover runs on, in its first domain.
func (w *World) loadMovers(dt float64) {
	turns := 0.0
	w.traffic = 0
	for _, m := range w.moves {
		turns += m.now.seconds
		w.traffic += m.now.pages / dt
	}
	for _, m := range w.moves {
		m.now.first = -1
		if m.now.pages <= 0 {
			continue
		}
		m.now.first = len(w.loads)
		for n, by := range m.by {
			if by > 0 {
				cpus := by * m.now.seconds / turns
				w.loads = append(w.loads, memsys.Load{
					Workload: len(w.live) + len(w.loads), Domain: w.nodes[n].llcs[0], CPUs: cpus, Threads: cpus,
					Ops: m.now.pages / dt * by, Work: &m.work, Home: m.home, Slow: 1,
				})
			}
		}
	}
}

// movePages is numbers 3 and 4: what of the plan was served.
func (w *World) movePages(dt float64) {
	for _, m := range w.moves {
		if m.now.pages <= 0 || m.now.first < 0 {
			continue
		}
		ops, cycles, k := 0.0, 0.0, m.now.first
		for _, by := range m.by {
			if by > 0 {
				r := &w.result.Loads[k]
				ops += r.Ops
				cycles += float64(r.Ops * r.Cycles)
				k++
			}
		}
		if ops <= 0 {
			continue
		}
		pages := min(m.now.pages, float64(ops*dt))
		if pages > m.now.pages*0.99 { // but for what was not noticed
			pages = m.now.pages
		}
		each := cycles / ops / w.c.System.Hz
		cpu := float64(pages * each)
		w.spend(m, cpu-m.now.paid)
		w.open(m.wl)
		d := w.host.Move(&m.wl.group, m.from, m.to, pages, m.step.PageCache)
		w.close(m.wl)
		m.pages += d.Pages
		m.cpu += cpu
		m.budget -= d.Pages
		m.stop(cpu, each)
		w.movable(m)
	}
}

// stop is number 4: what calls of so many seconds, each for a page, do to the workload.
func (m *move) stop(seconds, each float64) {
	batch := float64(callPages)
	if m.step.MaxStall > 0 {
		batch = max(1, min(batch, m.step.MaxStall.Seconds()/each))
	}
	mem := &m.wl.group.Memory
	held := sum(mem.Private) + sum(mem.Shared) + sum(mem.Mapped) + sum(mem.Cache)
	share := min(1, batch/max(held, 1))
	m.wl.requests.Stop(float64(seconds*share), float64(min(batch, held)*each))
}

// endMoves is what became of the window's moves. One whose turn did not come, or only for
// what rounding left of another's, has no outcome.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.begun && (m.over || m.pages >= halfPage) {
			w.outcomes = append(w.outcomes, m.outcome())
		}
	}
	if len(w.moves) > 0 {
		w.changed = true
	}
	w.moves = w.moves[:0]
}

func (m *move) outcome() action.Outcome {
	o := action.Outcome{Step: m.step, Moved: sim.BytesOf(m.pages), CPUSeconds: m.cpu}
	if m.full {
		o.Failed = sim.BytesOf(m.left)
	}
	if !m.wl.here() {
		o.Status, o.Detail = action.Gone, fmt.Sprintf("act on %s: no such file or directory (gone)", m.wl.id)
		return o
	}
	o.Detail = fmt.Sprintf("moved %v, %v of CPU time", o.Moved, time.Duration(math.Round(o.CPUSeconds*1e9)).Round(time.Microsecond))
	if o.Failed > 0 {
		o.Detail += fmt.Sprintf("; not moved: %v ENOMEM", o.Failed)
	}
	o.Status = action.Done
	if !m.full && m.left >= halfPage {
		o.Status = action.InProgress
		o.Detail += fmt.Sprintf("; stopped: %v is left", sim.BytesOf(m.left))
	}
	return o
}
