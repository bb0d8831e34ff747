// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"io"
	"strings"
	"unicode/utf8"

	"homenode/internal/trial"
)

// Text prints a report for a terminal of that many columns.
func Text(w io.Writer, v trial.Variation, width int) error {
	p := newPage(v)
	var out printer
	for _, text := range p.headline {
		out.wrapped(width, text)
	}
	for _, t := range p.tables {
		out.line("")
		out.table(t)
	}
	out.line("")
	for _, text := range p.sentences {
		out.wrapped(width, text)
	}
	if p.line != "" {
		out.line("\nFor repeatable timings:\n\n  " + p.line)
	}
	out.line("")
	for _, text := range p.notes {
		out.wrapped(width, text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

type printer struct{ strings.Builder }

func (p *printer) line(text string) { p.WriteString(strings.TrimRight(text, " ") + "\n") }

// wrapped prints a paragraph; lines after the first are indented.
func (p *printer) wrapped(width int, text string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > max(width, 40) {
			p.line(line)
			line = "  " + word
			continue
		}
		if line == "" {
			line = word
		} else {
			line += " " + word
		}
	}
	p.line(line)
}

// table aligns the first column left, and the last where it holds words.
func (p *printer) table(t table) {
	wide := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range append([][]string{t.heads}, t.rows...) {
		line := ""
		for i, cell := range row {
			blank := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if i == 0 || i == len(row)-1 {
				line += cell + blank + "  "
			} else {
				line += blank + cell + "  "
			}
		}
		p.line(line)
	}
}
