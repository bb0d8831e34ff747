// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// arrangement is where threads run and where their memory is.
type arrangement struct{ spread, memory string }

var arrangements = []arrangement{
	{profile.Intra, profile.Local}, {profile.Intra, profile.Remote}, {profile.Inter, profile.Local}, {profile.Inter, profile.Remote},
}

func (a arrangement) String() string { return a.spread + " " + a.memory }

// raoGrid is the axes of the grid, and its cells.
type raoGrid struct {
	threads  []int
	sizes    []unit.Bytes
	sharings []unit.Bytes
	at       map[raoKey]profile.RaoCell
	cycles   bool // all cells have them
}

type raoKey struct {
	threads int
	arrangement
	ws, sharing unit.Bytes
}

func newRaoGrid(cells []profile.RaoCell) raoGrid {
	g := raoGrid{at: map[raoKey]profile.RaoCell{}, cycles: true}
	for _, c := range cells {
		g.threads, g.sizes, g.sharings = append(g.threads, c.Threads), append(g.sizes, c.WS), append(g.sharings, c.Sharing)
		g.at[raoKey{c.Threads, arrangement{c.Spread, c.Memory}, c.WS, c.Sharing}] = c
		g.cycles = g.cycles && c.Cycles.Median.Known()
	}
	for _, list := range []*[]unit.Bytes{&g.sizes, &g.sharings} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	g.threads = unique(g.threads)
	return g
}

// cost is the cost of a cell: in cycles if all cells have them.
func (g raoGrid) cost(k raoKey) profile.Figure {
	c, ok := g.at[k]
	switch {
	case !ok:
		return profile.Figure{Why: "not measured"}
	case g.cycles:
		return c.Cycles
	}
	return c.PerOp
}

func (g raoGrid) unit() string {
	if g.cycles {
		return "cycles"
	}
	return "ns"
}

// fewSizes are those that a terminal shows: the smallest, the largest, and the first
// beyond the cache.
func (g raoGrid) fewSizes(threads int, sharing, llc unit.Bytes) []unit.Bytes {
	var sizes []unit.Bytes
	for _, ws := range g.sizes {
		has := func(a arrangement) bool { _, ok := g.at[raoKey{threads, a, ws, sharing}]; return ok }
		if slices.ContainsFunc(arrangements, has) {
			sizes = append(sizes, ws)
		}
	}
	n := len(sizes)
	if n <= 3 {
		return sizes
	}
	middle := n / 2
	for i, s := range sizes[1 : n-1] {
		if llc > 0 && s > llc {
			middle = i + 1
			break
		}
	}
	return []unit.Bytes{sizes[0], sizes[middle], sizes[n-1]}
}

// llcOf is the size of the last-level cache: as measured, else the firmware's; 0 is
// unknown.
func llcOf(p profile.Profile) unit.Bytes {
	if b, ok := p.LLC(); ok {
		return b
	}
	var last profile.CacheSize
	for _, c := range p.Caches {
		if c.Level > last.Level {
			last = c
		}
	}
	return last.Firmware.Or(0)
}

func raoSection(p profile.Profile) section {
	s := section{ID: "rao", Title: "Rao's grid: locality, cache contention, sharing", Notes: skips(p, profile.Rao),
		Sub: "Threads that each chase a working set of their own and add atomically to lines that all share; intra: on one node, inter: over several."}
	if len(p.Rao) == 0 {
		return s
	}
	g, llc := newRaoGrid(p.Rao), llcOf(p)
	s = s.with(g.summary(p.Rao, llc), unknowns{}).with(g.all(), g.unknowns())
	s.Findings, s.Panels = profile.RaoFindings(p.Rao, llc), raoPanels(p)
	return s
}

func (g raoGrid) summary(cells []profile.RaoCell, llc unit.Bytes) render.Grid {
	t := render.Grid{Caption: "Per operation, in " + g.unit() + "; what costs most, and how many times the cost it makes", Keys: 3,
		Heads: []string{"threads", "shared", "working\nset"}}
	for _, a := range arrangements {
		t.Heads = append(t.Heads, a.spread+"\n"+a.memory)
	}
	t.Heads = append(t.Heads, "costs\nmost")
	for _, n := range g.threads {
		for _, sharing := range g.sharings {
			for _, ws := range g.fewSizes(n, sharing, llc) {
				row := []string{strconv.Itoa(n), noneOr(sharing), ws.String()}
				for _, a := range arrangements {
					k, cell := raoKey{n, a, ws, sharing}, "-" // not in the grid
					if _, ok := g.at[k]; ok {
						cell = show(g.cost(k), render.Number)
					}
					row = append(row, cell)
				}
				t.AddText(append(row, dominates(cells, n, ws, sharing))...)
			}
		}
	}
	return t
}

func noneOr(b unit.Bytes) string {
	if b == 0 {
		return "none"
	}
	return b.String()
}

func dominates(cells []profile.RaoCell, threads int, ws, sharing unit.Bytes) string {
	f, ok := profile.RaoDominates(cells, threads, ws, sharing)
	switch {
	case !ok:
		return "-"
	case f.Name == "":
		return "nothing"
	}
	return fmt.Sprintf("%s %s×", f.Name, ratio(f.Ratio))
}

// all is every cell, in the grid's order.
func (g raoGrid) all() render.Grid {
	t := render.Grid{Caption: "Every cell", Long: true, Keys: 4, Heads: []string{"threads", "shared", "where", "working set", "ns/op", "cycles/op",
		"LLC misses/op", "LLC miss rate", "uncore penalty", "requests/op", "critical/op"}}
	g.each(func(k raoKey, c profile.RaoCell) {
		t.AddText(strconv.Itoa(k.threads), noneOr(k.sharing), k.arrangement.String(), k.ws.String(), show(c.PerOp, render.Tenths), show(c.Cycles, render.Number),
			show(c.LLCMiss, render.Number), show(c.MissRate, render.Number), show(c.Penalty, render.Number), show(c.Requests, render.Number), show(c.PenaltyPerOp, render.Number))
	})
	return t
}

func (g raoGrid) each(do func(raoKey, profile.RaoCell)) {
	for _, n := range g.threads {
		for _, sharing := range g.sharings {
			for _, a := range arrangements {
				for _, ws := range g.sizes {
					k := raoKey{n, a, ws, sharing}
					if c, ok := g.at[k]; ok {
						do(k, c)
					}
				}
			}
		}
	}
}

func (g raoGrid) unknowns() unknowns {
	var u unknowns
	g.each(func(k raoKey, c profile.RaoCell) {
		name := fmt.Sprintf("%d threads %v, %s, %s", k.threads, k.arrangement, k.ws.String(), sharedText(k.sharing))
		for _, f := range []profile.Figure{c.PerOp, c.Cycles, c.MissRate, c.Penalty} {
			if !f.Median.Known() {
				u.addFigure(f, name)
				return
			}
		}
	})
	return u
}
