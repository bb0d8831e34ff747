// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"math"
	"slices"

	"homenode/internal/profile"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// The micro-benchmark: each thread chases a list of lines over a working set of its own, in
// laps, and adds to one line of the shared region for each element
// (docs/decisions/0015-rao-grid.md, number 1).
const (
	// stepCycles is the cost of an element besides its load: a pointer, a count, a branch.
	// A larger value makes memory matter less.
	stepCycles       = 10
	stepInstructions = 8
	addInstructions  = 4
)

// The paper's sizes, and smaller ones at which all sets of two and of four threads fit an
// LLC of 12 MiB with room to spare. Without the smaller sizes, "below the LLC" has no cell.
var (
	workingSets = []unit.Bytes{
		1 * unit.MiB, 2 * unit.MiB, 4 * unit.MiB, 6 * unit.MiB, 8 * unit.MiB, 12 * unit.MiB,
		16 * unit.MiB, 24 * unit.MiB, 32 * unit.MiB, 64 * unit.MiB, 128 * unit.MiB,
	}
	sharings = []unit.Bytes{0, 4 * unit.KiB, 8 * unit.KiB, 16 * unit.KiB, 32 * unit.KiB, 64 * unit.KiB, 128 * unit.KiB}
	counts   = []int{2, 4, 8}
)

// Cell is a cell of the grid, with figures that a profile's cell lacks.
type Cell struct {
	profile.RaoCell
	IPC float64
	// Residue is the solver's: the remaining error of the steady state.
	Residue float64
}

// Grid runs the micro-benchmark on the first two nodes of a machine, in its memory model:
// steady states, no random numbers. A spread without room for its threads is left out:
// eight threads on nodes of four CPUs have inter only.
func Grid(sys *memsys.System) []Cell {
	if len(sys.Nodes) < 2 || len(sys.Domains) < 2 {
		return nil
	}
	g := grid{sys: sys}
	var cells []Cell
	for _, threads := range counts {
		for _, spread := range []string{profile.Intra, profile.Inter} {
			at := g.threadsOf(threads, spread)
			if at == nil {
				continue
			}
			for _, memory := range []string{profile.Local, profile.Remote} {
				for _, sharing := range sharings {
					for _, ws := range workingSets {
						cells = append(cells, g.cell(at, threads, spread, memory, ws, sharing))
					}
				}
			}
		}
	}
	return cells
}

// Profiles converts the cells to a profile's form.
func Profiles(cells []Cell) []profile.RaoCell {
	out := make([]profile.RaoCell, len(cells))
	for i, c := range cells {
		out[i] = c.RaoCell
	}
	return out
}

// LLC is the size of the cache by which the grid is judged.
func LLC(sys *memsys.System) unit.Bytes { return unit.Bytes(sys.Domains[0].LLC) }

type grid struct {
	sys    *memsys.System
	solver memsys.Solver
}

// threadsOf is the number of threads on each of the two nodes; nil: there is no room. Intra
// puts all on the first node; inter puts half on each.
func (g *grid) threadsOf(threads int, spread string) []int {
	at := []int{threads, 0}
	if spread == profile.Inter {
		at = []int{(threads + 1) / 2, threads / 2}
	}
	for node, n := range at {
		d, ok := g.domain(node)
		if !ok || float64(n) > g.sys.Domains[d].CPUs {
			return nil
		}
	}
	return at
}

// domain is the first domain of a node.
func (g *grid) domain(node int) (int, bool) {
	d := slices.IndexFunc(g.sys.Domains, func(d memsys.Domain) bool { return d.Node == node })
	return d, d >= 0
}

func workOf(ws, sharing unit.Bytes) *memsys.Work {
	w := &memsys.Work{
		Cycles: stepCycles, Instructions: stepInstructions,
		Regions: []memsys.Region{{Bytes: float64(ws), Accesses: 1, Parallelism: 1, Stream: true}},
	}
	if sharing > 0 {
		w.Adds, w.Lines = 1, float64(sharing)/memsys.LineBytes
		w.Instructions += addInstructions
	}
	return w
}

// loads returns one load for each node that has threads. Remote memory is on the other
// node. The shared region is where the first thread touched it.
func (g *grid) loads(at []int, memory string, work *memsys.Work) []memsys.Load {
	var loads []memsys.Load
	for node, n := range at {
		if n == 0 {
			continue
		}
		d, _ := g.domain(node)
		home, shared := make([]float64, len(g.sys.Nodes)), make([]float64, len(g.sys.Nodes))
		home[node], shared[0] = 1, 1
		if memory == profile.Remote {
			home[node], home[1-node] = 0, 1
			shared[0], shared[1] = 0, 1
		}
		loads = append(loads, memsys.Load{
			Domain: d, CPUs: float64(n), Threads: float64(n), Ops: math.Inf(1), Work: work, Home: home, Shared: shared, Slow: 1,
		})
	}
	return loads
}

func (g *grid) cell(at []int, threads int, spread, memory string, ws, sharing unit.Bytes) Cell {
	work := workOf(ws, sharing)
	res := g.solver.Solve(g.sys, g.loads(at, memory, work))
	t := totalOf(g.sys, work, res)
	one := func(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }
	c := Cell{IPC: work.Instructions / t.cycles, Residue: res.Residue}
	c.RaoCell = profile.RaoCell{
		Threads: threads, Spread: spread, Memory: memory, WS: ws, Sharing: sharing,
		PerOp: one(t.cycles / g.sys.Hz * 1e9), Cycles: one(t.cycles), LLCMiss: one(t.reads), MissRate: one(t.reads / t.requests),
		Penalty: one(t.waits / t.requests), Requests: one(t.requests), PenaltyPerOp: one(t.waits),
	}
	if sharing > 0 {
		c.AddEvery = 1
	}
	return c
}

// total sums up loads: a mean operation over all threads.
type total struct{ cycles, requests, waits, reads float64 }

// totalOf counts as requests (Rao's A) what leaves the private caches. Waits (W) are stall
// cycles except those for hits in L2, which are not uncore requests.
func totalOf(sys *memsys.System, work *memsys.Work, res *memsys.Result) total {
	var t total
	ops, asked := 0.0, work.Adds
	for _, r := range work.Regions {
		asked += r.Accesses
	}
	for _, l := range res.Loads {
		reads := 0.0
		for _, v := range l.DRAM {
			reads += v
		}
		ops += l.Ops
		t.cycles += l.Ops * l.Cycles
		t.requests += l.Ops * l.L2Misses
		t.waits += l.Ops * max(0, l.Stall-(asked-l.L2Misses)*sys.L2Cycles)
		t.reads += l.Ops * reads
	}
	if ops > 0 {
		t = total{t.cycles / ops, t.requests / ops, t.waits / ops, t.reads / ops}
	}
	return t
}
