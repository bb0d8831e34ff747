// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// How pages are moved:
//
//  1. One thread moves, one page after the other and one move after the other, on the
//     targets' CPUs, or where those have none, on any. Before the memory system is
//     solved, a move plans what it could do in its turn on an idle machine (planMoves).
//  2. Copying is a load like others: lines are read where the page was and written where
//     it goes. So others slow it down, and it them (loadMovers).
//  3. What it was served is moved, and paid for (movePages).
//  4. A call moves as many pages as fit into MaxStall, and they are out of reach for as
//     long as it takes; threads that access one of them stand still. Accesses go to all
//     pages alike, so of a call's time a workload loses what share of its pages is in it:
//     in all, moving a whole workload costs it about one call (stop).

// move is a move of pages under way, until the next window.
type move struct {
	step         action.Step
	wl           *workload
	from, to     []bool
	by           []float64 // share of the mover's work on each node's CPUs
	gives, takes []float64 // pages by node that could go, and come
	home         []float64 // of the mover's accesses
	budget       float64   // pages that it may still move
	pace         float64   // seconds that a page takes at the rate asked for; 0: any
	regions      [1]memsys.Region
	work         memsys.Work // of a page
	now          turn
	pages, cpu   float64 // moved, CPU seconds: sums
	left         float64 // pages that could still be moved
	begun        bool
	full         bool // there is no room for them
	over         bool // nothing more can be moved, or the budget is used up
}

// turn is a move's part of a step of time.
type turn struct {
	pages   float64 // that it asks to move
	seconds float64 // of the mover's time, on an idle machine
	paid    float64 // CPU seconds, on an idle machine
	first   int     // of its loads
}

const (
	// moveSeconds is the CPU time of moving a byte on an idle machine: MAO's 0.65 s/GB, as
	// linux has it. Where copying takes longer than that, it is what copying takes.
	moveSeconds = 0.64e-9
	// kernelCycles is what of a page's move is not copying, at least. A choice.
	kernelCycles = 1000
	// copies are lines of the one stream that copying is that are outstanding at once.
	copies = 8
	// lines are those of a page.
	lines = linux.PageBytes / memsys.LineBytes
	// callPages are the pages of a call that no MaxStall bounds (kernel/migrate: mostPages).
	callPages = 4096
	// halfPage is less than there can be to move.
	halfPage = 0.5
)

func (w *World) newMove(wl *workload, s action.Step) *move {
	n := len(w.places)
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

// runners is where moves to these nodes run, as shares: on their CPUs, or where they have
// none, on all.
func (w *World) runners(nodes set.NodeSet) []float64 {
	if w.c.Machine.CPUsOf(nodes).IsEmpty() {
		nodes = w.c.Machine.NodesWithCPUs()
	}
	by, all := make([]float64, len(w.places)), 0.0
	for n, p := range w.places {
		if nodes.Has(p.id) && len(p.domains) > 0 {
			by[n] = p.count
			all += p.count
		}
	}
	for n := range by {
		by[n] /= max(all, 1)
	}
	return by
}

// planMoves is number 1: one after the other, each at its rate.
func (w *World) planMoves(dt float64) {
	left := dt
	for _, m := range w.moves {
		m.now = turn{}
		switch {
		case m.over || left <= 0:
		case !m.wl.here():
			m.over = true
		default:
			m.begun = true
			left -= w.plan(m, left)
		}
	}
}

// plan is for at most so many seconds, and returns how many it takes.
func (w *World) plan(m *move, seconds float64) float64 {
	room := w.look(m)
	if m.over {
		return 0
	}
	idle := w.price(m, room)
	each := max(idle, m.pace)
	pages := min(m.budget, m.left, room, seconds/each)
	m.now = turn{pages: pages, seconds: float64(pages * each), paid: float64(pages * idle)}
	w.spend(m, m.now.paid)
	return m.now.seconds
}

// look finds what there is to move, what room there is, and whether that is the end.
// Where there is no room the rest has failed: a mover gets its budget back for pages that
// are refused, and tries them all (kernel/migrate, settle).
func (w *World) look(m *move) (room float64) {
	m.left, room = w.host.Movable(&m.wl.group, m.from, m.to, m.step.PageCache, m.gives, m.takes)
	m.over = m.left < halfPage || m.budget < halfPage
	if !m.over && room < halfPage {
		m.over, m.full = true, true
	}
	return room
}

// price sets what moving a page is for the memory system, and returns its seconds on an
// idle machine: a MoveSeconds, of which copying is a part, or copying and kernelCycles.
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

// movePages is numbers 3 and 4: what of the plan was served.
func (w *World) movePages(dt float64, res *memsys.Result) {
	for _, m := range w.moves {
		if m.now.pages <= 0 {
			continue
		}
		pages, cpu, k := 0.0, 0.0, m.now.first
		for _, by := range m.by {
			if by > 0 {
				r := &res.Loads[k]
				pages += float64(r.Ops * dt)
				cpu += float64(r.Ops * dt * r.Cycles)
				k++
			}
		}
		if cpu /= w.c.System.Hz; pages <= 0 {
			continue
		}
		if pages > m.now.pages*(1-1e-9) { // but for rounding
			pages = m.now.pages
		}
		w.spend(m, cpu-m.now.paid)
		d := w.host.Move(&m.wl.group, m.from, m.to, pages, m.step.PageCache)
		m.pages += d.Pages
		m.cpu += cpu
		m.budget -= d.Pages
		m.stop(cpu, cpu/pages)
		w.look(m)
	}
}

// stop is number 4: what calls of so many seconds, each for a page, do to the workload.
func (m *move) stop(seconds, each float64) {
	batch := float64(callPages)
	if m.step.MaxStall > 0 {
		batch = max(1, min(batch, m.step.MaxStall.Seconds()/each))
	}
	held, mem := 0.0, &m.wl.group.Memory
	for _, list := range [][]float64{mem.Private, mem.Shared, mem.Mapped, mem.Cache} {
		held += sum(list)
	}
	share := min(1, batch/max(held, 1))
	m.wl.stall += float64(seconds * share)
	m.wl.calls = max(m.wl.calls, float64(min(batch, held)*each))
}

func (w *World) anonOn(g *linux.Group, node int) float64 {
	n := len(w.places)
	pages := g.Memory.Shared[node]
	for t := range n {
		pages += g.Memory.Private[t*n+node]
	}
	return pages
}

// takeMovers takes the CPU time of movers from the nodes; a mover is one thread.
func (w *World) takeMovers(dt float64) {
	for n, p := range w.places {
		taken := max(0, min(w.mover[n], float64(dt*min(1, p.count))))
		w.mover[n] -= taken
		w.busy[n] += taken
		w.host.Nodes[n].CPUs = p.count - taken/dt
	}
}

// giveMovers gives the nodes' CPUs back.
func (w *World) giveMovers() {
	for n, p := range w.places {
		w.host.Nodes[n].CPUs = p.count
	}
}

// loadMovers is number 2: one load a node that the mover runs on, in its first domain.
// Together they are one CPU, in turns. Lines written are as many as those read, and
// taken to go the way of reads: the kernel copies without reading what it overwrites.
func (w *World) loadMovers(dt float64) {
	turns := 0.0
	for _, m := range w.moves {
		turns += m.now.seconds
	}
	for _, m := range w.moves {
		if m.now.pages <= 0 {
			continue
		}
		m.now.first = len(w.loads)
		for n, by := range m.by {
			if by > 0 {
				cpus := by * m.now.seconds / turns
				w.loads = append(w.loads, memsys.Load{
					Workload: len(w.live) + len(w.loads), Domain: w.places[n].domains[0], CPUs: cpus, Threads: cpus,
					Ops: m.now.pages / dt * by, Work: &m.work, Home: m.home, Slow: 1,
				})
			}
		}
	}
}

// endMoves is what became of the window's moves. One whose turn did not come has no
// outcome.
func (w *World) endMoves() {
	for _, m := range w.moves {
		if m.begun {
			w.outcomes = append(w.outcomes, m.outcome())
		}
	}
	w.moves = w.moves[:0]
}

func (m *move) outcome() action.Outcome {
	o := action.Outcome{Step: m.step, Moved: bytesOf(m.pages), CPUSeconds: m.cpu}
	if m.full {
		o.Failed = bytesOf(m.left)
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
		o.Detail += fmt.Sprintf("; stopped: %v is left", bytesOf(m.left))
	}
	return o
}

// bytesOf is whole pages, as a kernel counts.
func bytesOf(pages float64) unit.Bytes { return unit.Bytes(math.Round(pages)) * linux.PageBytes }
