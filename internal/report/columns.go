// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Columns is a table as a terminal has it: lines of cells, the first Keys of which
// name the line and stand left. Heads are lines like the others.
type Columns struct {
	Keys  int
	Lines [][]string
	// KeyWidth and CellWidth are what is left of a long name; more is cut off.
	KeyWidth, CellWidth int
}

// columnMargin is left of a table, columnGap between its columns.
const (
	columnMargin = 4
	columnGap    = 2
)

// Columns prints as many columns as fit, then the rest below, with the keys again. A
// line of which nothing is in those columns is left out there.
func (p *Terminal) Columns(c Columns) {
	if len(c.Lines) == 0 {
		return
	}
	wide, last := c.widths(), len(c.Lines[0])
	for from := c.Keys; from < last; {
		used := columnMargin
		for i := range c.Keys {
			used += wide[i] + columnGap
		}
		to := from
		for to < last && (to == from || used+wide[to] <= p.Width) {
			used += wide[to] + columnGap
			to++
		}
		if from > c.Keys {
			p.Line("")
		}
		for _, line := range c.Lines {
			if strings.Join(slices.Concat(line[:c.Keys], line[from:to]), "") != "" {
				p.columns(line, wide, c.Keys, from, to)
			}
		}
		from = to
	}
}

func (p *Terminal) columns(cells []string, wide []int, keys, from, to int) {
	line := strings.Repeat(" ", columnMargin)
	gap := strings.Repeat(" ", columnGap)
	for i := range keys {
		line += padRight(Clip(cells[i], wide[i]), wide[i]) + gap
	}
	for i := from; i < to; i++ {
		line += padLeft(Clip(cells[i], wide[i]), wide[i]) + gap
	}
	p.Line(line)
}

func (c Columns) widths() []int {
	wide := make([]int, len(c.Lines[0]))
	for _, line := range c.Lines {
		for i, cell := range line {
			most := c.CellWidth
			if i < c.Keys {
				most = c.KeyWidth
			}
			wide[i] = min(max(wide[i], Runes(cell)), most)
		}
	}
	return wide
}

// Clip cuts a text to n columns; an ellipsis says so.
func Clip(text string, n int) string {
	if Runes(text) <= n {
		return text
	}
	return string([]rune(text)[:max(0, n-1)]) + "…"
}

// Commas prints a whole number: 1,234,567.
func Commas(v float64) string {
	digits := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}
