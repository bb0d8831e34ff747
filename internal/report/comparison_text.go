// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// comparisonWidth is the columns that Text uses; its tables need them.
const comparisonWidth = 110

// Comparison prints the comparison for a terminal of 110 columns.
func Comparison(w io.Writer, c experiment.Comparison, o render.TextOptions) error {
	c = cleanComparison(c)
	o.Width = comparisonWidth
	p := &comparisonPrinter{o.Terminal()}
	for _, sentence := range comparisonHeadline(c) {
		p.Paragraph("", "   ", sentence)
	}
	p.grid(armGrid(c))
	for _, note := range comparisonNotes(c) {
		p.Paragraph("  ", "     ", note)
	}
	if l, ok := longer(c); ok {
		p.grid(longGrid(l))
	}
	p.grid(serviceGrid(c))
	p.Line("")
	for _, l := range legend(c, "*") {
		p.Paragraph("", "   ", l)
	}
	p.targets(c.Targets)
	p.Line("")
	for _, f := range facts(c) {
		p.Paragraph("", "   ", f.Name+": "+f.Text)
	}
	return p.Flush(w, "comparison")
}

type comparisonPrinter struct{ render.Terminal }

// label is the arm's name in at most n columns; the mark of the ceiling is never cut
// off.
func (r armRow) label(n int) string {
	const tag = " (ceiling)"
	if r.Ceiling {
		return render.Clip(r.Title, n-len(tag)) + tag
	}
	return render.Clip(r.Title, n)
}

// grid prints a table. The last column of a cell is for the mark of the best.
func (p *comparisonPrinter) grid(g grid) {
	t := render.Table{Columns: []render.Column{{Left: true}}, Gap: 1}
	for _, h := range g.Heads {
		t.Columns = append(t.Columns, render.Column{Head: h.Top + " \n" + h.Bottom + " "})
	}
	p.rows(&t, g, 0)
	label := 0
	for _, gr := range g.Groups {
		for _, r := range gr.Rows {
			label = max(label, render.Width(r.label(comparisonWidth))+3)
		}
	}
	label = min(label, max(comparisonWidth-t.Wide(), 16))
	t.Rows = nil
	p.rows(&t, g, label)
	p.Line("")
	if t.Columns[0].Head = g.Caption + "\n"; render.Width(g.Caption) > label {
		p.Line(p.Paint(render.Bold, g.Caption))
		t.Columns[0].Head = "\n"
	}
	p.Table(t)
}

// rows fills the table; the arms' names get label columns.
func (p *comparisonPrinter) rows(t *render.Table, g grid, label int) {
	for _, gr := range g.Groups {
		if gr.Title != "" {
			title := make([]string, len(t.Columns))
			if label > 0 {
				title[0] = p.Paint(render.Bold, render.Clip(gr.Title, label/2)) + " (" + render.Clip(render.OrUnknown(gr.Kind), label/3) + ")"
			}
			t.Add(title...)
		}
		for _, r := range gr.Rows {
			t.Add(p.row(r, len(t.Columns), label)...)
		}
	}
}

func (p *comparisonPrinter) row(r armRow, columns, label int) []string {
	cells := make([]string, columns)
	if label > 0 {
		cells[0] = "  " + r.label(label-2)
	}
	if r.Ours {
		cells[0] = p.Paint(render.Bold, cells[0])
	}
	if r.NotApplicable && columns > 1 {
		cells[1] = notApplicable
	}
	for i, c := range r.Cells {
		mark := " "
		if c.Best {
			mark = p.Paint(render.Bold, "*")
		}
		cells[i+1] = c.Text + mark
	}
	return cells
}

func (p *comparisonPrinter) targets(targets []experiment.Target) {
	if len(targets) == 0 {
		return
	}
	t := render.Table{Margin: 2, Columns: []render.Column{{Left: true}, {Left: true, Most: 56}, {Left: true, Most: 22}, {}}}
	for _, target := range targets {
		ink := render.Green
		if !target.Met {
			ink = render.Red
		}
		t.Add(p.Paint(ink, metOrNot(target.Met)), target.Name, target.Want, "got "+got(target))
	}
	p.Line("")
	p.Line(p.Paint(render.Bold, "Targets"))
	p.Table(t)
	for _, target := range targets {
		if target.Note != "" {
			p.Paragraph("  "+target.Name+": ", strings.Repeat(" ", 4), target.Note)
		}
	}
}
