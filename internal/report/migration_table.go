// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strconv"

	"homenode/internal/migration"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// kindColumn is how one figure is taken from a row.
type kindColumn struct {
	head string
	of   func(kindSum) string
}

// kindTable is before and after by kind. It has a column for every node if that fits
// the width.
func kindTable(r migration.Report, width int) render.Table {
	after := outcomeColumns(r)
	wide := makeTable(r, slices.Concat(nodeColumns(r), after), true)
	if wide.Wide() <= width {
		return wide
	}
	if t := makeTable(r, slices.Concat(nodeColumns(r), after), false); t.Wide() <= width {
		return t
	}
	t := makeTable(r, slices.Concat(sideColumns(r), after), true)
	if t.Wide() <= width {
		return t
	}
	return makeTable(r, slices.Concat(sideColumns(r), after), false)
}

func nodeColumns(r migration.Report) (out []kindColumn) {
	for id := range nodesOf(r).All() {
		out = append(out, kindColumn{"before\nnode " + strconv.Itoa(id), func(x kindSum) string { return bytesCell(x.Before[id]) }})
	}
	return out
}

// sideColumns are home and elsewhere; elsewhere is the memory to be moved.
func sideColumns(r migration.Report) []kindColumn {
	out := []kindColumn{{"before\nat home", func(x kindSum) string { return bytesCell(x.Home) }}}
	if sum := kindSums(r); sum[len(sum)-1].Other > 0 {
		out = append(out, kindColumn{"before\naside", func(x kindSum) string { return bytesCell(x.Other) }})
	}
	return out
}

func outcomeColumns(r migration.Report) []kindColumn {
	out := []kindColumn{{toMove(r.Mode), func(x kindSum) string { return bytesCell(x.ToMove) }}}
	if !r.Result.Known() {
		return out
	}
	out = append(out, kindColumn{"moved", func(x kindSum) string { return cellOpt(x.Moved) }})
	all := kindSums(r)
	if all[len(all)-1].Gone.Or(0) > 0 {
		out = append(out, kindColumn{"gone by\nitself", func(x kindSum) string { return cellOpt(x.Gone) }})
	}
	return append(out, kindColumn{"stayed", func(x kindSum) string { return cellOpt(x.Failed) }},
		kindColumn{"after\nelsewhere", func(x kindSum) string { return cellOpt(x.After) }})
}

// toMove is the name of the column elsewhere: hot mode does not move all of it.
func toMove(m migration.Mode) string {
	if m == migration.Hot {
		return "before\nelsewhere"
	}
	return "to move"
}

func makeTable(r migration.Report, columns []kindColumn, about bool) render.Table {
	t := render.Table{Margin: 2, Keys: 1, Columns: []render.Column{{Head: "kind", Left: true}}}
	if about {
		t.Keys, t.Columns = 2, append(t.Columns, render.Column{Left: true})
	}
	for _, c := range columns {
		t.Columns = append(t.Columns, render.Column{Head: c.head})
	}
	for _, x := range kindSums(r) {
		cells := []string{string(x.Kind)}
		if about {
			cells = append(cells, x.Kind.About())
		}
		for _, c := range columns {
			cells = append(cells, c.of(x))
		}
		t.Add(cells...)
	}
	return t
}

// paceTable is what was expected, and what was achieved.
func paceTable(r migration.Report) render.Table {
	t := render.Table{Margin: 2, Keys: 1, Columns: []render.Column{{Left: true}, {Head: "expected"}}}
	e := r.Estimate
	perSecond := unit.None[float64]()
	if s, ok := e.Seconds.Get(); ok && s > 0 {
		perSecond = unit.Some(float64(e.Bytes) / s)
	}
	t.Rows = [][]string{
		{"amount", e.Bytes.String()}, {"time", seconds(e.Seconds.V)}, {"rate", byteRate(perSecond)},
		{"CPU time", seconds(e.CPUSeconds.V)}, {"bandwidth", e.BandwidthShare.V.String()},
	}
	res, ok := r.Result.Get()
	if !ok {
		return t
	}
	got, known := res.Rate()
	t.Columns = append(t.Columns, render.Column{Head: "achieved"})
	model, own := byClocks(r)
	for i, text := range []string{res.Moved().String(), render.Span(res.Time) + model, byteRate(unit.OptOf(float64(got), known)) + model, render.Span(res.CPU) + own, "not measured"} {
		t.Rows[i] = append(t.Rows[i], text)
	}
	if r.Frozen.Known() {
		t.Add("frozen", "", seconds(r.Frozen)+model)
	}
	return t
}

// byClocks separates figures by a model's clock from CPU time, which is the machine's
// in any case. If all are the machine's, they need no separation.
func byClocks(r migration.Report) (model, own string) {
	if r.How == unit.HowModelled {
		return " (model's)", " (machine's)"
	}
	return "", ""
}

func byteRate(o unit.Opt[float64]) string { return render.Show(o, render.Rate) }
