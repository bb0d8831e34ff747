// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"homenode/internal/report"
	"homenode/internal/sim/scenario"
)

// Text prints a result for a terminal.
func Text(w io.Writer, r scenario.Result, o report.TextOptions) error {
	v, err := newView(r)
	if err != nil {
		return err
	}
	p := &printer{o.Terminal()}
	for _, s := range v.answer {
		p.Wrapped("", s)
	}
	if len(v.Arms) > 0 {
		p.section("ARMS", "Median of the seeds; lowest–highest below, where they differ. * is the largest share of local reads.")
		p.facts(v.armsAbout())
		p.Line("")
		p.table(v.arms)
	}
	if len(v.tables) > 0 {
		p.section("SERVICES", "Of "+v.Arms[v.base].Name+" the figures; of the others × that, seed by seed: median, and lowest–highest below, where they differ. * is the best median.")
	}
	for _, t := range v.tables {
		p.Line("")
		p.Wrapped("  ", t.Caption)
		p.table(t)
	}
	p.claims(v.claims)
	p.list("NOT TO BE COMPARED, AND HOW TO READ IT", v.notes)
	p.section("HOW", "")
	p.facts(v.facts)
	return o.Print(w, &p.Terminal, "result")
}

type printer struct{ report.Terminal }

func runes(text string) int { return utf8.RuneCountInString(text) }

func (p *printer) section(title, sub string) {
	p.Line("")
	p.Line(title)
	if sub != "" {
		p.Wrapped("", sub)
	}
}

func (p *printer) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.section(title, "")
	for _, l := range lines {
		p.Wrapped("  ", l)
	}
}

// facts hang their texts right of the names, all at one column.
func (p *printer) facts(all []fact) {
	wide := 0
	for _, f := range all {
		wide = max(wide, min(runes(f.Name), keyWidth))
	}
	for _, f := range all {
		name := clip(f.Name, wide)
		p.Hanging("  "+name+strings.Repeat(" ", wide-runes(name)+2), f.Text)
	}
}

// claims stand one below the other: their words are too long for columns.
func (p *printer) claims(all []claimed) {
	if len(all) == 0 {
		return
	}
	p.section("THE PAPER'S FIGURES BESIDE OURS", "Changes against the arm that is named; of an arm alone, its own figure. The paper's were measured on its machines, ours are modelled.")
	for _, c := range all {
		p.Wrapped("  ", orText(c.Figure, unknown)+": "+c.what())
		p.Hanging("    ", c.beside())
		if c.Note != "" {
			p.Hanging("    note: ", c.Note)
		}
	}
}

// beside says "paper −12.1%, ours −9.7% (−11.2% to −8.1%): less, the same way"; where
// the paper has no figure there is nothing to judge.
func (c claimed) beside() string {
	paper, ours := c.paper(), c.ours()
	if !c.Value.Known() {
		paper = ": " + paper
	} else {
		paper = " " + paper
	}
	text := "paper" + paper + ", ours " + ours.Text
	if ours.Range != "" {
		text += " (" + ours.Range + ")"
	}
	if why := orText(c.Why, c.verdict()); why != "" {
		text += ": " + why
	}
	return text
}

// margin is left of a table, columnGap between its columns.
const (
	margin    = 4
	columnGap = 2
	// keyWidth and cellWidth are what is left of a long name: a key and a cell fit the
	// narrowest terminal.
	keyWidth  = 24
	cellWidth = 21
)

// lines are the printed lines of a table: two for a row that has ranges.
func (t table) lines() (out [][]string) {
	out = report.HeadRows(t.Heads)
	for _, row := range t.Rows {
		first, second, two := make([]string, len(row)), make([]string, len(row)), false
		for i, c := range row {
			first[i], second[i] = c.Text, c.Range
			if c.Best {
				first[i] = "*" + c.Text
			}
			two = two || c.Range != ""
		}
		if out = append(out, first); two {
			out = append(out, second)
		}
	}
	return out
}

// table prints as many columns as fit, then the rest below, with the keys again.
func (p *printer) table(t table) {
	lines := t.lines()
	wide := make([]int, len(t.Heads))
	for _, line := range lines {
		for i, c := range line {
			most := cellWidth
			if i < t.Keys {
				most = keyWidth
			}
			wide[i] = min(max(wide[i], runes(c)), most)
		}
	}
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
		for _, line := range lines {
			if strings.Join(slices.Concat(line[:t.Keys], line[from:to]), "") == "" {
				continue // heads of two words, or ranges, are in other columns
			}
			p.row(line, wide, t.Keys, from, to)
		}
		from = to
	}
}

func (p *printer) row(row []string, wide []int, keys, from, to int) {
	line := strings.Repeat(" ", margin)
	for i := range keys {
		c := clip(row[i], wide[i])
		line += c + strings.Repeat(" ", wide[i]-runes(c)+columnGap)
	}
	for i := from; i < to; i++ {
		c := clip(row[i], wide[i])
		line += strings.Repeat(" ", wide[i]-runes(c)) + c + strings.Repeat(" ", columnGap)
	}
	p.Line(line)
}

func clip(text string, n int) string {
	if runes(text) <= n {
		return text
	}
	return string([]rune(text)[:max(0, n-1)]) + "…"
}
