// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"slices"
	"strconv"
	"strings"

	"homenode/internal/migration"
	"homenode/internal/report"
	"homenode/internal/unit"
)

// table is rows of cells; Keys are to the left.
type table struct {
	Heads []string // on two lines if there is a line break
	Keys  int
	Rows  [][]string
}

// column is how one figure is taken from a row.
type column struct {
	head string
	of   func(row) string
}

// kindTable is before and after by kind. It has a column for every node if that fits
// the width.
func kindTable(r migration.Report, width int) table {
	after := outcomeColumns(r)
	wide := makeTable(r, slices.Concat(nodeColumns(r), after), true)
	if wide.width() <= width {
		return wide
	}
	if t := makeTable(r, slices.Concat(nodeColumns(r), after), false); t.width() <= width {
		return t
	}
	t := makeTable(r, slices.Concat(sideColumns(r), after), true)
	if t.width() <= width {
		return t
	}
	return makeTable(r, slices.Concat(sideColumns(r), after), false)
}

func nodeColumns(r migration.Report) (out []column) {
	for id := range nodesOf(r).All() {
		out = append(out, column{"before\nnode " + strconv.Itoa(id), func(x row) string { return cell(x.Before[id]) }})
	}
	return out
}

// sideColumns are home and elsewhere; elsewhere is what there is to move.
func sideColumns(r migration.Report) []column {
	out := []column{{"before\nat home", func(x row) string { return cell(x.Home) }}}
	if sum := rows(r); sum[len(sum)-1].Other > 0 {
		out = append(out, column{"before\naside", func(x row) string { return cell(x.Other) }})
	}
	return out
}

func outcomeColumns(r migration.Report) []column {
	out := []column{{toMove(r.Mode), func(x row) string { return cell(x.ToMove) }}}
	if !r.Result.Known() {
		return out
	}
	out = append(out, column{"moved", func(x row) string { return cellOpt(x.Moved) }})
	all := rows(r)
	if all[len(all)-1].Gone.Or(0) > 0 {
		out = append(out, column{"gone by\nitself", func(x row) string { return cellOpt(x.Gone) }})
	}
	return append(out, column{"stayed", func(x row) string { return cellOpt(x.Failed) }},
		column{"after\nelsewhere", func(x row) string { return cellOpt(x.After) }})
}

// toMove is what stands elsewhere: hot mode does not mean to move all of it.
func toMove(m migration.Mode) string {
	if m == migration.Hot {
		return "before\nelsewhere"
	}
	return "to move"
}

func makeTable(r migration.Report, columns []column, about bool) table {
	t := table{Heads: []string{"kind"}, Keys: 1}
	if about {
		t.Heads, t.Keys = append(t.Heads, ""), 2
	}
	for _, c := range columns {
		t.Heads = append(t.Heads, c.head)
	}
	for _, x := range rows(r) {
		cells := []string{string(x.Kind)}
		if about {
			cells = append(cells, x.Kind.About())
		}
		for _, c := range columns {
			cells = append(cells, c.of(x))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// margin is left of a table, columnGap between its columns.
const (
	margin    = 2
	columnGap = 2
)

func (t table) widths() []int {
	wide := make([]int, len(t.Heads))
	for _, cells := range append(report.HeadRows(t.Heads), t.Rows...) {
		for i, c := range cells {
			wide[i] = max(wide[i], report.Runes(c))
		}
	}
	return wide
}

func (t table) width() int {
	sum := margin
	for i, w := range t.widths() {
		if sum += w; i > 0 {
			sum += columnGap
		}
	}
	return sum
}

func (t table) lines() (out []string) {
	wide := t.widths()
	for _, cells := range append(report.HeadRows(t.Heads), t.Rows...) {
		line := strings.Repeat(" ", margin)
		for i, c := range cells {
			pad := strings.Repeat(" ", wide[i]-report.Runes(c))
			switch gap := strings.Repeat(" ", columnGap); {
			case i == 0:
				line += c + pad
			case i < t.Keys:
				line += gap + c + pad
			default:
				line += gap + pad + c
			}
		}
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

// paceTable is what was expected, and what it came to.
func paceTable(r migration.Report) table {
	t := table{Heads: []string{"", "expected"}, Keys: 1}
	e := r.Estimate
	perSecond := unit.None[float64]()
	if s, ok := e.Seconds.Get(); ok && s > 0 {
		perSecond = unit.Some(float64(e.Bytes) / s)
	}
	share := unknown
	if v, ok := e.BandwidthShare.Get(); ok {
		share = v.String()
	}
	t.Rows = [][]string{
		{"amount", size(e.Bytes)}, {"time", seconds(e.Seconds.V)}, {"rate", rateOpt(perSecond)},
		{"CPU time", seconds(e.CPUSeconds.V)}, {"bandwidth", share},
	}
	res, ok := r.Result.Get()
	if !ok {
		return t
	}
	got, known := res.Rate()
	t.Heads = append(t.Heads, "achieved")
	model, own := byClocks(r)
	for i, text := range []string{size(res.Moved()), span(res.Time) + model, rateOpt(unit.OptOf(float64(got), known)) + model, span(res.CPU) + own, "not measured"} {
		t.Rows[i] = append(t.Rows[i], text)
	}
	if r.Frozen.Known() {
		t.Rows = append(t.Rows, []string{"frozen", "", seconds(r.Frozen) + model})
	}
	return t
}

// byClocks tells figures by a model's clock from CPU time, which is the machine's in
// any case. Where all are the machine's, they need not be told apart.
func byClocks(r migration.Report) (model, own string) {
	if r.How == unit.HowModelled {
		return " (model's)", " (machine's)"
	}
	return "", ""
}

func rateOpt(o unit.Opt[float64]) string {
	if v, ok := o.Get(); ok {
		return rate(v)
	}
	return unknown
}
