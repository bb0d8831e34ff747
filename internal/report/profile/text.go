// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"io"
	"strings"
	"unicode/utf8"

	"homenode/internal/profile"
	"homenode/internal/report"
)

// Text prints a profile for a terminal.
func Text(w io.Writer, p profile.Profile, o report.TextOptions) error {
	v, out := newView(p), &printer{o.Terminal()}
	out.Wrapped("", v.headline)
	for _, f := range v.facts {
		out.Wrapped("  ", f.Name+": "+f.Text)
	}
	for i, c := range caveats(v.Profile) {
		if i == 0 {
			out.Line("")
		}
		out.Wrapped("", "Caution: "+c)
	}
	for _, s := range v.sections {
		out.section(s)
	}
	return o.Print(w, &out.Terminal, "profile")
}

// printer prints a profile.
type printer struct{ report.Terminal }

func runes(text string) int { return utf8.RuneCountInString(text) }

func (p *printer) section(s section) {
	p.Line("")
	p.Wrapped("", strings.ToUpper(s.Title))
	p.Wrapped("", s.Sub)
	for i, t := range s.Tables {
		if t.Long {
			continue
		}
		if i > 0 {
			p.Line("")
		}
		if t.Caption != "" {
			p.Wrapped("  ", t.Caption)
		}
		p.table(t)
	}
	for _, n := range s.Notes {
		p.Wrapped("  ", n)
	}
	if len(s.Findings) > 0 {
		p.Line("")
		p.Wrapped("  ", "What Rao's slides say of it, and what these figures say")
	}
	for _, f := range s.Findings {
		p.Wrapped("  ", strings.ToUpper(string(f.Verdict))+": "+f.Statement)
		p.Wrapped("      ", f.Evidence)
	}
}

// margin is left of a table, columnGap between its columns.
const (
	margin    = 4
	columnGap = 2
	// keyWidth and cellWidth are what is left of a long name, such as a policy's:
	// two keys and a cell fit the narrowest terminal.
	keyWidth  = 28
	cellWidth = 21
)

// table prints as many columns as fit, then the rest below, with the keys again.
func (p *printer) table(t table) {
	wide := t.widths()
	for from := t.Keys; from < len(t.Heads); {
		used := margin
		for i := range t.Keys {
			used += wide[i] + columnGap
		}
		to := from
		for to < len(t.Heads) && (to == from || used+wide[to] <= p.Width) {
			used += wide[to] + columnGap
			to++
		}
		if from > t.Keys {
			p.Line("")
		}
		for _, row := range append(report.HeadRows(t.Heads), t.Rows...) {
			p.row(row, wide, t.Keys, from, to)
		}
		from = to
	}
}

func (p *printer) row(row []string, wide []int, keys, from, to int) {
	line := strings.Repeat(" ", margin)
	for i := range keys {
		cell := clip(row[i], wide[i])
		line += cell + strings.Repeat(" ", wide[i]-runes(cell)+columnGap)
	}
	for i := from; i < to; i++ {
		cell := clip(row[i], wide[i])
		line += strings.Repeat(" ", wide[i]-runes(cell)) + cell + strings.Repeat(" ", columnGap)
	}
	p.Line(line)
}

func (t table) widths() []int {
	wide := make([]int, len(t.Heads))
	for _, row := range append(report.HeadRows(t.Heads), t.Rows...) {
		for i, cell := range row {
			most := cellWidth
			if i < t.Keys {
				most = keyWidth
			}
			wide[i] = min(max(wide[i], runes(cell)), most)
		}
	}
	return wide
}

func clip(text string, n int) string {
	if runes(text) <= n {
		return text
	}
	return string([]rune(text)[:max(0, n-1)]) + "…"
}
