// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"homenode/internal/profile"
)

// TextOptions say what is printed on.
type TextOptions struct {
	Width int  // columns; less than 60 is taken as 80
	UTF8  bool // else ASCII only
}

// Text prints a profile for a terminal.
func Text(w io.Writer, p profile.Profile, o TextOptions) error {
	if o.Width < 60 {
		o.Width = 80
	}
	v, out := newView(p), &printer{width: o.Width}
	out.wrapped("", v.headline)
	for _, f := range v.facts {
		out.wrapped("  ", f.Name+": "+f.Text)
	}
	for i, c := range caveats(v.Profile) {
		if i == 0 {
			out.line("")
		}
		out.wrapped("", "Caution: "+c)
	}
	for _, s := range v.sections {
		out.section(s)
	}
	text := out.String()
	if !o.UTF8 {
		text = ascii(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// toASCII has what the faces print beyond it; the rest becomes "?". No entry is
// wider than what it replaces: columns stay where they are.
var toASCII = map[rune]rune{'×': 'x', '±': '~', '–': '-', '→': '>', '…': '~', 'µ': 'u', '≥': '>', '≤': '<', '−': '-', '·': '.'}

func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r <= '~' {
			return r
		}
		if a, ok := toASCII[r]; ok {
			return a
		}
		return '?'
	}, text)
}

type printer struct {
	strings.Builder
	width int
}

func (p *printer) line(text string) { p.WriteString(strings.TrimRight(text, " ") + "\n") }

// wrapped prints a paragraph; what does not fit is indented.
func (p *printer) wrapped(indent, text string) {
	line := indent
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case runes(line)+1+runes(word) > p.width:
			p.line(line)
			line = indent + "  " + word
		default:
			line += " " + word
		}
		for runes(line) > p.width { // a word longer than a line
			cut := []rune(line)
			p.line(string(cut[:p.width]))
			line = indent + "  " + string(cut[p.width:])
		}
	}
	p.line(line)
}

func runes(text string) int { return utf8.RuneCountInString(text) }

func (p *printer) section(s section) {
	p.line("")
	p.wrapped("", strings.ToUpper(s.Title))
	p.wrapped("", s.Sub)
	for i, t := range s.Tables {
		if t.Long {
			continue
		}
		if i > 0 {
			p.line("")
		}
		if t.Caption != "" {
			p.wrapped("  ", t.Caption)
		}
		p.table(t)
	}
	for _, n := range s.Notes {
		p.wrapped("  ", n)
	}
	if len(s.Findings) > 0 {
		p.line("")
		p.wrapped("  ", "What Rao's slides say of it, and what these figures say")
	}
	for _, f := range s.Findings {
		p.wrapped("  ", strings.ToUpper(string(f.Verdict))+": "+f.Statement)
		p.wrapped("      ", f.Evidence)
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
		for to < len(t.Heads) && (to == from || used+wide[to] <= p.width) {
			used += wide[to] + columnGap
			to++
		}
		if from > t.Keys {
			p.line("")
		}
		for _, row := range append(t.headRows(), t.Rows...) {
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
	p.line(line)
}

// headRows are one line, or two if a head has two; words stand at the bottom.
func (t table) headRows() [][]string {
	top, bottom, two := make([]string, len(t.Heads)), make([]string, len(t.Heads)), false
	for i, h := range t.Heads {
		upper, lower, broken := strings.Cut(h, "\n")
		if top[i], bottom[i] = upper, lower; !broken {
			top[i], bottom[i] = "", h
		}
		two = two || broken
	}
	if two {
		return [][]string{top, bottom}
	}
	return [][]string{bottom}
}

func (t table) widths() []int {
	wide := make([]int, len(t.Heads))
	for _, row := range append(t.headRows(), t.Rows...) {
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
