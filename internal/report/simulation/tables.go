// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// first keeps only the first n columns.
func first(n int, t render.Grid) render.Grid {
	t.Heads = t.Heads[:n]
	for i, row := range t.Rows {
		t.Rows[i] = row[:n]
	}
	return t
}

func cellOf(s scenario.Spread, print func(float64) string) render.Cell {
	if s.N == 0 {
		return render.Cell{Text: none}
	}
	return render.Cell{Text: print(s.Median), Small: rangeOf(s, print)}
}

// of says so if a figure covers fewer seeds than there are.
func of(s scenario.Spread, seeds int, c render.Cell) render.Cell {
	if s.N > 0 && s.N < seeds {
		c.Small = strings.TrimSpace(c.Small + " (" + strconv.Itoa(s.N) + "/" + strconv.Itoa(seeds) + ")")
		c.Partly = true
	}
	return c
}

// own is an arm's figure itself.
func (v scenarioView) own(m figure, arm int, service string) render.Cell {
	s := m.Over(v.Arms[arm], service)
	return of(s, len(v.Arms[arm].Runs), cellOf(s, m.print))
}

// pairs is the number of seeds that two arms have in common.
func pairs(a, base scenario.Outcome) (n int) {
	scenario.EachPair(a, base, func(_, _ scenario.Run) { n++ })
	return n
}

// armTable has the arms side by side.
func (v scenarioView) armTable() render.Grid {
	t := render.Grid{Caption: "Arms: median of the seeds, lowest–highest", Heads: []string{"arm"}, Keys: 1}
	figures := v.armFigures()
	for _, m := range figures {
		t.Heads = append(t.Heads, headOf(m))
	}
	top := best(v.locals(), false)
	for i, a := range v.Arms {
		row := render.Cells(a.Name)
		for k, m := range figures {
			c := v.own(m, i, "")
			c.Best = k == 0 && top[i]
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// serviceTable has the reference arm's figures, and the others' as multiples of them.
func (v scenarioView) serviceTable(name string) render.Grid {
	base := v.Arms[v.base]
	t := render.Grid{Caption: name + replicasOf(v, name), Heads: []string{"arm"}, Keys: 1}
	for _, m := range v.metrics {
		t.Heads = append(t.Heads, headOf(m))
	}
	dropped := v.anyDropped(name)
	if dropped {
		t.Heads = append(t.Heads, "dropped")
	}
	for i, a := range v.Arms {
		row := render.Cells(a.Name)
		for _, m := range v.metrics {
			row = append(row, v.serviceCell(name, m, i))
		}
		if dropped {
			s := droppedShare(a, name)
			row = append(row, of(s, len(a.Runs), cellOf(s, render.Percent)))
		}
		if a.Name == base.Name && i == v.base { // the reference stands first
			t.Rows = append([][]render.Cell{row}, t.Rows...)
			continue
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func headOf(m figure) string {
	if m.Name == scenario.CPUPerOp {
		return "CPU per\noperation"
	}
	return strings.Replace(m.title, ", ", ",\n", 1)
}

func replicasOf(v scenarioView, service string) string {
	if n := replicas(v, service); n > 0 {
		return " (" + render.Count(n, "replica") + ")"
	}
	return ""
}

func (v scenarioView) serviceCell(name string, m figure, arm int) render.Cell {
	base := v.Arms[v.base]
	var all []scenario.Spread
	for _, a := range v.Arms {
		all = append(all, m.Against(a, base, name))
	}
	c := of(all[arm], pairs(v.Arms[arm], base), cellOf(all[arm], render.Times))
	if arm == v.base {
		c = v.own(m, arm, name)
	} else if all[arm].N == 0 && m.Over(v.Arms[arm], name).N > 0 { // the arm has a figure, the reference has none
		c = v.own(m, arm, name)
		c.Text += " alone"
	}
	c.Best = m.judged() && best(all, m.Less)[arm]
	return c
}

func (v scenarioView) anyDropped(name string) bool {
	for _, a := range v.Arms {
		if droppedShare(a, name).Max > 0 {
			return true
		}
	}
	return false
}

// absoluteTable has the figures themselves, for the page.
func (v scenarioView) absoluteTable() render.Grid {
	t := render.Grid{Caption: "All figures of the services: median of the seeds, lowest–highest", Heads: []string{"service", "arm"}, Keys: 2}
	for _, m := range v.metrics {
		t.Heads = append(t.Heads, headOf(m))
	}
	for _, name := range v.services {
		for i, a := range v.Arms {
			row := render.Cells(name, a.Name)
			for _, m := range v.metrics {
				row = append(row, v.own(m, i, name))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// claimTable is the paper's figures beside ours, for the page.
func (v scenarioView) claimTable() render.Grid {
	t := render.Grid{Caption: "Changes against the arm that is named; of an arm alone, its own figure", Heads: []string{"figure", "what", "paper", "ours", "ours is", "note"}, Keys: 2}
	for _, c := range v.claims {
		t.Rows = append(t.Rows, []render.Cell{{Text: render.Or(c.Figure, unknown)}, {Text: c.what()}, {Text: c.paper()}, c.ours(), {Text: render.Or(c.Why, c.verdict())}, {Text: c.Note}})
	}
	return t
}

// armsAbout describes the arms.
func (v scenarioView) armsAbout() (out []render.Fact) {
	for i, a := range v.Arms {
		text := render.Or(a.About, "policy "+render.Or(a.Policy, "none"))
		if i == v.base {
			text += " (the others are compared with it)"
		}
		out = append(out, render.Fact{Name: a.Name, Text: text})
	}
	return out
}
