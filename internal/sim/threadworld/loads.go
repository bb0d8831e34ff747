// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

// group is threads that are alike to the memory system: of one workload, below one LLC,
// with their pages in the same places. It is one load.
type group struct {
	wl           *workload
	live         int // index in World.live
	llc          int
	key          uint64
	threads      float64
	cpus, solved float64   // CPUs' worth of time: now, and when last solved
	private      []float64 // sums of shares of their private pages by node
	owners       float64   // threads that have private pages
	figures
}

// figures are per operation.
type figures struct {
	cycles, stall, waits, requests, local, remote float64
	llcBytes                                      float64 // bytes that all its threads hold
}

// cyclesOf is the cycles of a thread's operation, as last known.
func (w *World) cyclesOf(t *thread) float64 {
	if t.group < len(w.groups) {
		if g := &w.groups[t.group]; g.wl == t.wl && g.cycles > 0 {
			return g.cycles
		}
	}
	return w.alone(t)
}

// alone is a guess, from the operation running alone.
func (w *World) alone(t *thread) float64 {
	return sim.CyclesAlone(&w.Config.System, &t.wl.Works[t.wl.Demand.Phase], w.cpus[t.cpu].node)
}

// meanCycles is the mean over all CPU time that its threads got, or else over the threads.
func (w *World) meanCycles(wl *workload) float64 {
	for pass := range 2 {
		time, ops := 0.0, 0.0
		for i := range wl.threads {
			t := &wl.threads[i]
			part := t.got
			if pass == 1 {
				part = 1
			}
			time += part
			ops += part / w.cyclesOf(t)
		}
		if ops > 0 {
			return time / ops
		}
	}
	return 1
}

// solve puts threads into groups and computes the cost of their operations.
func (w *World) solve(dt float64) {
	w.changed = false
	w.gather()
	w.load(dt)
	if len(w.Loads) == 0 {
		return
	}
	w.result = w.Solver.Solve(&w.Config.System, w.Loads)
	for i := range w.groups {
		w.read(i, &w.result.Loads[i])
	}
	w.learn()
}

// gather makes the groups, in the order of live and of threads. Known cycles are kept.
func (w *World) gather() {
	for _, wl := range w.live {
		for i := range wl.threads {
			t := &wl.threads[i]
			t.last = w.cyclesOf(t)
		}
	}
	old := w.groups
	w.groups = w.groups[:0]
	for k, wl := range w.live {
		first := len(w.groups)
		for i := range wl.threads {
			w.join(k, wl, &wl.threads[i], first)
		}
	}
	clear(old[min(len(old), len(w.groups)):])
}

// join adds a thread to its group, or makes a group for it.
func (w *World) join(k int, wl *workload, t *thread, first int) {
	d := w.cpus[t.cpu].llc
	at := first
	for at < len(w.groups) && (w.groups[at].llc != d || w.groups[at].key != t.key) {
		at++
	}
	if at == len(w.groups) {
		if at < cap(w.groups) {
			w.groups = w.groups[:at+1]
		} else {
			w.groups = append(w.groups, group{})
		}
		g := &w.groups[at]
		room := g.private
		if len(room) != len(w.nodes) {
			room = make([]float64, len(w.nodes))
		}
		clear(room)
		*g = group{wl: wl, live: k, llc: d, key: t.key, private: room, figures: figures{cycles: t.last}}
	}
	g := &w.groups[at]
	t.group = at
	if math.Abs(t.last-g.cycles) > settled*g.cycles && !wl.closed() {
		w.stale = true // its pace used the cost of its operations at its old place
	}
	g.threads++
	g.cpus += w.works(t)
	if all := detmath.Sum(t.private); all > 0 {
		g.owners++
		for m, pages := range t.private {
			g.private[m] += pages / all
		}
	}
}

// load makes a Load for each group, and those of the movers. Where CPU time was given by
// the last cost of an operation, operations are limited; there is time for more if an
// operation turns out to take longer.
func (w *World) load(dt float64) {
	w.Loads, w.room.shares = w.Loads[:0], w.room.shares[:0]
	for i := range w.groups {
		g := &w.groups[i]
		g.solved = g.cpus
		wl, cpus := g.wl, max(g.cpus, few) // an unused LLC has no steady state
		l := memsys.Load{
			Workload: g.live, Domain: g.llc, CPUs: cpus, Threads: max(g.threads, cpus), Ops: math.Inf(1),
			Work: &wl.Works[wl.Demand.Phase], Home: w.home(g, wl.Private), Slow: wl.Slow, Before: g.cycles,
		}
		if !wl.closed() {
			l.Ops = cpus * w.Config.System.Hz / g.cycles
			l.CPUs = min(g.threads, cpus*spareTime)
		}
		if wl.Spec.Work.Adds > 0 {
			l.Shared = w.home(g, 0)
		}
		w.Loads = append(w.Loads, l)
	}
	w.LoadMovers(dt)
	w.traffic = w.planned
}

// spareTime is the factor by which an operation may turn out to take longer.
const spareTime = 2

// home is the distribution over nodes of a group's accesses, with the given share to
// private memory. The shares sum to 1. A kind without pages leaves its share to the other
// (linux.Group.Homes).
func (w *World) home(g *group, private float64) []float64 {
	at := len(w.room.shares)
	for range w.nodes {
		w.room.shares = append(w.room.shares, 0)
	}
	home := w.room.shares[at:len(w.room.shares):len(w.room.shares)]
	m := &g.wl.Group.Memory
	all := detmath.Sum(m.Shared) + detmath.Sum(m.Mapped)
	switch {
	case g.owners == 0 && all <= 0:
		home[w.Host.Zonelist[w.llcs[g.llc].node][0]] = 1
		return home
	case g.owners == 0:
		private = 0
	case all <= 0:
		private, all = 1, 1
	}
	for k := range home {
		home[k] = (m.Shared[k] + m.Mapped[k]) * ((1 - private) / all)
		if g.owners > 0 {
			home[k] += g.private[k] * (private / g.owners)
		}
	}
	rest := detmath.Sum(home)
	for k := range home {
		home[k] /= rest
	}
	return home
}

// read takes a group's figures from the result. The uncore's waits are the exposed cycles
// of waiting for what is not in the core's own caches: latency / parallelism of each
// request, added up. That is Rao's W, the cycles with at least one critical request
// outstanding, as the model has no other requests: all are demand reads, which overlap by
// Parallelism and with nothing else.
func (w *World) read(i int, r *memsys.LoadResult) {
	g := &w.groups[i]
	node := w.llcs[g.llc].node
	f := figures{cycles: r.Cycles, stall: r.Stall, requests: r.L2Misses, llcBytes: r.LLC}
	f.waits = max(0, r.Stall-w.Solver.NearStall(i))
	for m, reads := range r.DRAM {
		if m == node {
			f.local += reads
		} else {
			f.remote += reads
		}
	}
	if math.Abs(f.cycles-g.cycles) > settled*g.cycles && !g.wl.closed() {
		w.stale = true
	}
	g.figures = f
}

// learn stores what the result says about workloads.
func (w *World) learn() {
	k := 0
	for i, wl := range w.live {
		own, all := 0.0, 0.0
		wl.llc = 0
		for ; k < len(w.groups) && w.groups[k].live == i; k++ {
			wl.llc += w.groups[k].llcBytes
			if wl.Mixed {
				mine, both := w.Solver.OwnReads(k, w.Loads[k].Work.Regions)
				own += mine * w.result.Loads[k].Ops
				all += both * w.result.Loads[k].Ops
			}
		}
		if all <= 0 {
			continue
		}
		if math.Abs(own/all-wl.Private) > noticed {
			w.changed = true
		}
		wl.Private = own / all
	}
}
