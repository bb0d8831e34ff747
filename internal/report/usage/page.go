// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"homenode/internal/report"
)

// Screen is what is printed on.
type Screen struct {
	Width int  // columns; less than 40 is taken as 80
	ASCII bool // no block characters
	Top   int  // at most so many mappings or processes; 0: ten
}

const unknown = "unknown"

// page gathers the text.
type page struct {
	Screen
	out strings.Builder
}

func newPage(s Screen) *page {
	if s.Width < 40 {
		s.Width = 80
	}
	if s.Top <= 0 {
		s.Top = 10
	}
	return &page{Screen: s}
}

func (p *page) flush(w io.Writer) error {
	text := p.out.String()
	if p.ASCII {
		text = strings.Map(ascii, text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// ascii puts one character for another: columns stay where they are.
func ascii(r rune) rune {
	switch {
	case r == '…', r == '±':
		return '~'
	case r == '×':
		return 'x'
	case r == 'Σ':
		return 'S'
	case r > '~':
		return '?'
	}
	return r
}

func (p *page) line(text string) { p.out.WriteString(strings.TrimRight(text, " ") + "\n") }

// heading begins a section.
func (p *page) heading(text string) {
	if p.out.Len() > 0 {
		p.line("")
	}
	p.wrapped("", text)
}

// wrapped prints a paragraph; what does not fit is indented.
func (p *page) wrapped(indent, text string) {
	line := indent
	for i, word := range strings.Fields(report.Printable(text)) {
		switch {
		case i == 0:
			line += word
		case width(line)+1+width(word) > p.Width:
			p.line(line)
			line = indent + "  " + word
		default:
			line += " " + word
		}
	}
	p.line(line)
}

// problems are what could not be read.
func (p *page) problems(all []string) {
	if len(all) > 0 {
		p.line("")
	}
	for _, text := range all {
		p.wrapped("", "could not read: "+text)
	}
}

// column is one of a table.
type column struct {
	title string
	left  bool // aligned; figures are to the right
	// rank says which go first when there is no room: higher ranks; 0 stays.
	rank int
	// least is how narrow it may be made, by leaving out its beginning; 0: not at all.
	least int
}

const (
	gap    = 2       // blanks between columns
	always = 1 << 10 // the rank of a column that is left out in any case
)

// table prints rows of cells; it leaves out columns until the rest fits.
func (p *page) table(cols []column, rows [][]string) {
	wide := widths(cols, rows)
	shown := make([]bool, len(cols))
	for i := range cols {
		shown[i] = cols[i].rank < always
	}
	p.fit(cols, wide, shown)
	head := make([]string, len(cols))
	for i, c := range cols {
		head[i] = c.title
	}
	for _, row := range append([][]string{head}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			if shown[i] {
				line.WriteString(pad(cell, wide[i], cols[i].left) + "  ")
			}
		}
		p.line(line.String())
	}
}

func widths(cols []column, rows [][]string) []int {
	wide := make([]int, len(cols))
	for i, c := range cols {
		wide[i] = width(c.title)
		for _, row := range rows {
			row[i] = report.Printable(row[i])
			wide[i] = max(wide[i], width(row[i]))
		}
	}
	return wide
}

// fit narrows what may be narrowed, then drops columns, the highest rank first.
func (p *page) fit(cols []column, wide []int, shown []bool) {
	for {
		over := -gap - p.Width
		drop := -1
		for i, c := range cols {
			if !shown[i] {
				continue
			}
			over += wide[i] + gap
			if c.rank > 0 && (drop < 0 || c.rank >= cols[drop].rank) {
				drop = i
			}
		}
		for i, c := range cols {
			if shown[i] && c.least > 0 && over > 0 {
				less := min(over, max(0, wide[i]-c.least))
				wide[i], over = wide[i]-less, over-less
			}
		}
		if over <= 0 || drop < 0 {
			return
		}
		shown[drop] = false
		p.widen(cols, wide, shown, drop)
	}
}

// widen gives what a dropped column leaves to those that were narrowed: fit
// narrows them again if that is too much.
func (p *page) widen(cols []column, wide []int, shown []bool, dropped int) {
	for i, c := range cols {
		if shown[i] && c.least > 0 {
			wide[i] += wide[dropped] + gap
			return
		}
	}
}

// pad fills a cell up, or shortens it: of a path the end tells most.
func pad(cell string, n int, left bool) string {
	w := width(cell)
	if w > n {
		runes := []rune(cell)
		return "…" + string(runes[len(runes)-n+1:])
	}
	fill := strings.Repeat(" ", n-w)
	if left {
		return cell + fill
	}
	return fill + cell
}

func width(text string) int { return utf8.RuneCountInString(text) }

var blocks = []rune(" ▏▎▍▌▋▊▉█")

// bar is a share of n columns. What is not nothing is seen.
func (p *page) bar(part, whole float64, n int) string {
	if whole <= 0 || part <= 0 || n <= 0 {
		return ""
	}
	eighths := max(1, min(8*n, int(part/whole*float64(8*n)+0.5)))
	if p.ASCII {
		return strings.Repeat("#", max(1, (eighths+4)/8))
	}
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string(blocks[part])
	}
	return text
}

// sorted is a sorted copy.
func sorted[T any](list []T, order func(a, b T) int) []T {
	out := slices.Clone(list)
	slices.SortStableFunc(out, order)
	return out
}
