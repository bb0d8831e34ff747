// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// table is rows of cells, for both outputs. The first Keys columns name the row: they are
// at the left, and are repeated where a wide table is broken.
type table struct {
	Caption string
	Heads   []string // a line break makes a narrow column of two words
	Keys    int
	Rows    [][]scenarioCell
}

// scenarioCell is a figure, and the range of its seeds.
type scenarioCell struct {
	Text, Range string
	Best        bool
	Partly      bool // only some of the seeds have it
}

// first keeps only the first n columns.
func (t table) first(n int) table {
	t.Heads = t.Heads[:n]
	for i, row := range t.Rows {
		t.Rows[i] = row[:n]
	}
	return t
}

func words(texts ...string) (row []scenarioCell) {
	for _, t := range texts {
		row = append(row, scenarioCell{Text: t})
	}
	return row
}

func cellOf(s scenario.Spread, print func(float64) string) scenarioCell {
	if s.N == 0 {
		return scenarioCell{Text: none}
	}
	return scenarioCell{Text: print(s.Median), Range: rangeOf(s, print)}
}

// of says so if a figure covers fewer seeds than there are.
func (c scenarioCell) of(s scenario.Spread, seeds int) scenarioCell {
	if s.N > 0 && s.N < seeds {
		c.Range = strings.TrimSpace(c.Range + " (" + strconv.Itoa(s.N) + "/" + strconv.Itoa(seeds) + ")")
		c.Partly = true
	}
	return c
}

// own is an arm's figure itself.
func (v scenarioView) own(m figure, arm int, service string) scenarioCell {
	s := m.Over(v.Arms[arm], service)
	return cellOf(s, m.print).of(s, len(v.Arms[arm].Runs))
}

// pairs is the number of seeds that two arms have in common.
func pairs(a, base scenario.Outcome) (n int) {
	scenario.EachPair(a, base, func(_, _ scenario.Run) { n++ })
	return n
}

// armTable has the arms side by side.
func (v scenarioView) armTable() table {
	t := table{Caption: "Arms: median of the seeds, lowest–highest", Heads: []string{"arm"}, Keys: 1}
	figures := v.armFigures()
	for _, m := range figures {
		t.Heads = append(t.Heads, headOf(m))
	}
	top := best(v.locals(), false)
	for i, a := range v.Arms {
		row := words(a.Name)
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
func (v scenarioView) serviceTable(name string) table {
	base := v.Arms[v.base]
	t := table{Caption: name + replicasOf(v, name), Heads: []string{"arm"}, Keys: 1}
	for _, m := range v.metrics {
		t.Heads = append(t.Heads, headOf(m))
	}
	dropped := v.anyDropped(name)
	if dropped {
		t.Heads = append(t.Heads, "dropped")
	}
	for i, a := range v.Arms {
		row := words(a.Name)
		for _, m := range v.metrics {
			row = append(row, v.serviceCell(name, m, i))
		}
		if dropped {
			s := droppedShare(a, name)
			row = append(row, cellOf(s, render.Percent).of(s, len(a.Runs)))
		}
		if a.Name == base.Name && i == v.base { // the reference stands first
			t.Rows = append([][]scenarioCell{row}, t.Rows...)
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

func (v scenarioView) serviceCell(name string, m figure, arm int) scenarioCell {
	base := v.Arms[v.base]
	var all []scenario.Spread
	for _, a := range v.Arms {
		all = append(all, m.Against(a, base, name))
	}
	c := cellOf(all[arm], render.Times).of(all[arm], pairs(v.Arms[arm], base))
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
func (v scenarioView) absoluteTable() table {
	t := table{Caption: "All figures of the services: median of the seeds, lowest–highest", Heads: []string{"service", "arm"}, Keys: 2}
	for _, m := range v.metrics {
		t.Heads = append(t.Heads, headOf(m))
	}
	for _, name := range v.services {
		for i, a := range v.Arms {
			row := words(name, a.Name)
			for _, m := range v.metrics {
				row = append(row, v.own(m, i, name))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// claimTable is the paper's figures beside ours, for the page.
func (v scenarioView) claimTable() table {
	t := table{Caption: "Changes against the arm that is named; of an arm alone, its own figure", Heads: []string{"figure", "what", "paper", "ours", "ours is", "note"}, Keys: 2}
	for _, c := range v.claims {
		t.Rows = append(t.Rows, []scenarioCell{{Text: render.Or(c.Figure, unknown)}, {Text: c.what()}, {Text: c.paper()}, c.ours(), {Text: render.Or(c.Why, c.verdict())}, {Text: c.Note}})
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
