// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"homenode/internal/trial"
)

// width is the most columns Text uses.
const width = 110

// Option changes how Text prints.
type Option func(*printer)

// Colour makes Text use ANSI colours; without it there are no escape codes.
func Colour(on bool) Option { return func(p *printer) { p.colour = on } }

// Text prints the comparison for a terminal of 110 columns.
func Text(w io.Writer, c trial.Comparison, options ...Option) error {
	c = clean(c)
	p := &printer{}
	for _, set := range options {
		set(p)
	}
	for _, sentence := range headline(c) {
		p.wrapped("", sentence)
	}
	p.grid(armGrid(c))
	for _, note := range notes(c) {
		p.wrapped("  ", note)
	}
	if l, ok := longer(c); ok {
		p.grid(longGrid(l))
	}
	p.grid(serviceGrid(c))
	p.line("")
	for _, l := range legend(c, "*") {
		p.wrapped("", l)
	}
	p.targets(c.Targets)
	p.facts(facts(c))
	_, err := io.WriteString(w, p.out.String())
	return err
}

// printer gathers the text.
type printer struct {
	out    strings.Builder
	colour bool
}

// The colours: bold, green, red of every terminal's own palette.
const (
	bold  = "\x1b[1m"
	green = "\x1b[32m"
	red   = "\x1b[31m"
	plain = "\x1b[0m"
)

func (p *printer) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return code + text + plain
}

func (p *printer) line(text string) { p.out.WriteString(strings.TrimRight(text, " ") + "\n") }

// wrapped prints a paragraph; what does not fit is indented.
func (p *printer) wrapped(indent, text string) {
	line := indent
	for i, word := range strings.Fields(text) {
		if i > 0 && Runes(line)+1+Runes(word) > width {
			p.line(line)
			line = indent + "   "
		} else if i > 0 {
			line += " "
		}
		for Runes(line)+Runes(word) > width { // a word longer than a line
			cut := width - Runes(line)
			p.line(line + string([]rune(word)[:cut]))
			line, word = indent+"   ", string([]rune(word)[cut:])
		}
		line += word
	}
	p.line(line)
}

// Runes is how many columns a text takes, where none is wider than one.
func Runes(text string) int { return utf8.RuneCountInString(text) }

func padLeft(text string, n int) string  { return strings.Repeat(" ", max(0, n-Runes(text))) + text }
func padRight(text string, n int) string { return text + strings.Repeat(" ", max(0, n-Runes(text))) }

// label is the arm's name in at most n columns; that it is the ceiling is never cut off.
func (r row) label(n int) string {
	const tag = " (ceiling)"
	if r.Ceiling {
		return Clip(r.Title, n-len(tag)) + tag
	}
	return Clip(r.Title, n)
}

// widths are of the cells, and of the arms' names, which get what is left.
func (g grid) widths() (label int, cells []int) {
	cells = make([]int, len(g.Heads))
	left := width - 1 // a last mark
	for i, h := range g.Heads {
		cells[i] = max(Runes(h.Top), Runes(h.Bottom))
		for _, gr := range g.Groups {
			for _, r := range gr.Rows {
				if !r.NotApplicable {
					cells[i] = max(cells[i], Runes(r.Cells[i].Text))
				}
			}
		}
		left -= cells[i] + 2
	}
	for _, gr := range g.Groups {
		for _, r := range gr.Rows {
			label = max(label, Runes(r.label(width))+2)
		}
	}
	return min(label, max(left, 16)), cells
}

func (p *printer) grid(g grid) {
	label, cells := g.widths()
	p.line("")
	top, bottom := padRight(g.Caption, label), strings.Repeat(" ", label)
	if Runes(g.Caption) > label {
		p.line(p.paint(bold, g.Caption))
		top = bottom
	}
	for i, h := range g.Heads {
		top += "  " + padLeft(h.Top, cells[i])
		bottom += "  " + padLeft(h.Bottom, cells[i])
	}
	p.line(top)
	p.line(bottom)
	for _, gr := range g.Groups {
		if gr.Title != "" {
			p.line(p.paint(bold, Clip(gr.Title, width/2)) + " (" + Clip(orUnknown(gr.Kind), width/3) + ")")
		}
		for _, r := range gr.Rows {
			p.row(r, label, cells)
		}
	}
}

func (p *printer) row(r row, label int, cells []int) {
	text := padRight("  "+r.label(label-2), label)
	if r.Ours {
		text = p.paint(bold, text)
	}
	if r.NotApplicable {
		p.line(text + "  " + notApplicable)
		return
	}
	for i, c := range r.Cells {
		mark := " "
		if c.Best {
			mark = p.paint(bold, "*")
		}
		gap := " " // the mark before it is the other half
		if i == 0 {
			gap = "  "
		}
		text += gap + padLeft(c.Text, cells[i]) + mark
	}
	p.line(text)
}

func (p *printer) targets(targets []trial.Target) {
	if len(targets) == 0 {
		return
	}
	name, want, have := 0, 0, 0
	for _, t := range targets {
		name, want, have = max(name, Runes(t.Name)), max(want, Runes(t.Want)), max(have, Runes(got(t)))
	}
	name, want = min(name, 56), min(want, 22)
	p.line("")
	p.line(p.paint(bold, "Targets"))
	for _, t := range targets {
		code := green
		if !t.Met {
			code = red
		}
		head := fmt.Sprintf("  %s  %s  %s  got %s", p.paint(code, padRight(verdict(t.Met), 7)),
			padRight(Clip(t.Name, name), name), padRight(Clip(t.Want, want), want), padLeft(got(t), have))
		used := 2 + 7 + 2 + name + 2 + want + 6 + have
		if t.Note == "" || used+2+Runes(t.Note) <= width {
			p.line(head + "  " + t.Note)
			continue
		}
		p.line(head)
		p.wrapped("           ", t.Note)
	}
}

func (p *printer) facts(facts []fact) {
	p.line("")
	for _, f := range facts {
		p.wrapped("", f.Name+": "+f.Text)
	}
}
