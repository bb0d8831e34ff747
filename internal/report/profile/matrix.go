// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"slices"
	"strconv"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// matrix is figures from nodes with CPUs to nodes with memory.
type matrix struct {
	from, to []int
	at       map[[2]int]profile.Figure
	between  bool // from one node to another only: from a node to itself there is nothing to measure
}

// newMatrix has a row for every node with CPUs, and for other nodes with figures.
func newMatrix(p profile.Profile, list []profile.PairFigure) matrix {
	m := matrix{at: map[[2]int]profile.Figure{}}
	for i, id := range p.Machine.Nodes {
		m.to = append(m.to, id)
		if i >= len(p.Machine.NodeCPUs) || !p.Machine.NodeCPUs[i].IsEmpty() {
			m.from = append(m.from, id)
		}
	}
	for _, f := range list {
		m.from, m.to = append(m.from, f.From), append(m.to, f.To)
		m.at[[2]int{f.From, f.To}] = f.Figure
	}
	m.from, m.to = unique(m.from), unique(m.to)
	return m
}

func unique(ids []int) []int {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// get is a figure; a missing one was not measured.
func (m matrix) get(from, to int) profile.Figure {
	f, ok := m.at[[2]int{from, to}]
	if !ok {
		f.Why = "not measured"
	}
	return f
}

func (m matrix) table(caption string, print func(float64) string, of func(profile.Figure) profile.Figure) render.Grid {
	t := render.Grid{Caption: caption, Heads: []string{"from \\ to"}, Keys: 1}
	for _, to := range m.to {
		head := "node " + strconv.Itoa(to)
		if len(m.to) > 8 { // no room for the word
			head = strconv.Itoa(to)
		}
		t.Heads = append(t.Heads, head)
	}
	for _, from := range m.from {
		row := []string{"node " + strconv.Itoa(from)}
		for _, to := range m.to {
			cell := show(of(m.get(from, to)), print)
			if m.between && from == to {
				cell = "-"
			}
			row = append(row, cell)
		}
		t.AddText(row...)
	}
	return t
}

func (m matrix) notes() []string {
	var u unknowns
	for _, from := range m.from {
		for _, to := range m.to {
			if !m.between || from != to {
				u.addFigure(m.get(from, to), arrow(from, to))
			}
		}
	}
	return u.notes()
}

func arrow(from, to int) string { return strconv.Itoa(from) + " → " + strconv.Itoa(to) }

func same(f profile.Figure) profile.Figure { return f }

// cycles is the same figure in core clocks; it has no spread of its own.
func cycles(f profile.Figure) profile.Figure { return profile.Figure{Median: f.Cycles, N: 1} }

func latencySection(p profile.Profile) section {
	s := section{ID: "latency", Title: "Latency", Notes: skips(p, profile.Latency),
		Sub: "Of one load that waits for the one before it: from the CPUs of a node (row) to the memory of a node (column)."}
	if len(p.Latency) == 0 {
		return s
	}
	m := newMatrix(p, p.Latency)
	s.Tables = append(s.Tables, m.table("nanoseconds", render.Tenths, same))
	if slices.ContainsFunc(p.Latency, func(f profile.PairFigure) bool { return f.Cycles.Known() }) {
		s.Tables = append(s.Tables, m.table("core cycles", render.Number, cycles))
	}
	s.Notes = append(m.notes(), s.Notes...)
	s.Panels = heatPanels(p, profile.Latency)
	return s
}

// bandwidthRates has one unit for all pairs and peaks: people compare them.
func bandwidthRates(p profile.Profile) rates {
	return ratesOf(append(pairFigures(p.Bandwidth), figuresOf(p.Peak, func(f profile.NodeFigure) profile.Figure { return f.Figure })...)...)
}

func bandwidthSection(p profile.Profile) section {
	s := section{ID: "bandwidth", Title: "Bandwidth", Notes: skips(p, profile.Bandwidth),
		Sub: "Read by all CPUs of a node (row) from the memory of a node (column). Peak: read from a node by all CPUs of the machine."}
	r := bandwidthRates(p)
	if len(p.Bandwidth) > 0 {
		m := newMatrix(p, p.Bandwidth)
		s.Tables = append(s.Tables, m.table(r.unit+": "+r.power+" bytes per second, as vendors count", r.print, same))
		s.Notes = append(m.notes(), s.Notes...)
		s.Panels = heatPanels(p, profile.Bandwidth)
	}
	if len(p.Peak) > 0 {
		t := render.Grid{Caption: "Peak, from all CPUs", Heads: []string{"memory of", r.unit}, Keys: 1}
		var u unknowns
		for _, f := range p.Peak {
			t.AddText("node "+strconv.Itoa(f.Node), show(f.Figure, r.print))
			u.addFigure(f.Figure, "peak of node "+strconv.Itoa(f.Node))
		}
		s.Tables, s.Notes = append(s.Tables, t), append(u.notes(), s.Notes...)
	}
	return s
}
