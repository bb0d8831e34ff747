// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"
)

// Column is one of a table.
type Column struct {
	Head string // a line break: on two lines
	Left bool   // aligned to the left, as names are; figures are to the right
	Rank int    // left out when there is no room, the highest first; 0: never
	// Least is how narrow the column may be made, by leaving out the beginning of its
	// cells; 0: not at all.
	Least int
	Most  int // what is wider is cut off; 0: nothing is
}

// Table is rows of cells.
type Table struct {
	Columns []Column
	Rows    [][]string
	Margin  int // left of it
	// Keys is how many columns name the row: those that do not fit the terminal are
	// printed below, with the keys again. 0: lines may be wider than the terminal.
	Keys int
	Gap  int // between columns; 0: two
}

// LeftTable is a table of words and figures, all left-aligned.
func LeftTable(heads ...string) (t Table) {
	for _, h := range heads {
		t.Columns = append(t.Columns, Column{Head: h, Left: true})
	}
	return t
}

// TableOf has figures under the heads; the first keys columns are names. A name is cut to
// name columns, another cell to cell columns.
func TableOf(keys, name, cell int, heads ...string) Table {
	t := Table{Keys: keys, Margin: 4}
	for i, h := range heads {
		c := Column{Head: h, Left: i < keys, Most: cell}
		if i < keys {
			c.Most = name
		}
		t.Columns = append(t.Columns, c)
	}
	return t
}

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// lines are the heads and the rows.
func (t Table) lines() [][]string {
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i] = c.Head
	}
	if strings.Join(heads, "") == "" {
		return t.Rows
	}
	return append(headRows(heads), t.Rows...)
}

// headRows are the heads in one line, or in two if a head has two; words stand at the
// bottom.
func headRows(heads []string) [][]string {
	top, bottom, two := make([]string, len(heads)), make([]string, len(heads)), false
	for i, h := range heads {
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

func (t Table) gap() int {
	if t.Gap > 0 {
		return t.Gap
	}
	return 2
}

func (t Table) widths(lines [][]string) []int {
	wide := make([]int, len(t.Columns))
	for _, line := range lines {
		for i, cell := range line {
			wide[i] = max(wide[i], Width(cell))
		}
	}
	for i, c := range t.Columns {
		if c.Most > 0 {
			wide[i] = min(wide[i], c.Most)
		}
	}
	return wide
}

// Wide is how many columns the whole table takes.
func (t Table) Wide() int {
	sum := t.Margin - t.gap()
	for _, w := range t.widths(t.lines()) {
		sum += w + t.gap()
	}
	return sum
}

// Table prints a table: narrowed, without the columns that may be left out, and in
// several parts, as far as the terminal's width takes that.
func (p *Terminal) Table(t Table) {
	lines := t.lines()
	wide, shown := t.widths(lines), make([]bool, len(t.Columns))
	for i := range shown {
		shown[i] = true
	}
	t.fit(p.Width, wide, shown)
	var columns []int
	for i := range t.Columns {
		if shown[i] {
			columns = append(columns, i)
		}
	}
	for n, part := range t.parts(p.Width, wide, columns) {
		if n > 0 {
			p.Line("")
		}
		for _, line := range lines {
			if t.says(line, part) {
				p.Line(t.line(line, wide, part))
			}
		}
	}
}

// says is false of a line that has nothing in a part of a table that is continued.
func (t Table) says(line []string, part []int) bool {
	return t.Keys == 0 || slices.ContainsFunc(part, func(i int) bool { return line[i] != "" })
}

// parts are the columns that are printed side by side: the keys, and as many others as fit.
func (t Table) parts(width int, wide, columns []int) (parts [][]int) {
	if t.Keys == 0 || len(columns) <= t.Keys {
		return [][]int{columns}
	}
	keys := columns[:t.Keys]
	for rest := columns[t.Keys:]; len(rest) > 0; {
		used := t.Margin
		for _, i := range keys {
			used += wide[i] + t.gap()
		}
		n := 0
		for n < len(rest) && (n == 0 || used+wide[rest[n]] <= width) {
			used += wide[rest[n]] + t.gap()
			n++
		}
		parts = append(parts, append(keys[:len(keys):len(keys)], rest[:n]...))
		rest = rest[n:]
	}
	return parts
}

func (t Table) line(cells []string, wide, columns []int) string {
	line := strings.Repeat(" ", t.Margin)
	for k, i := range columns {
		if k > 0 {
			line += strings.Repeat(" ", t.gap())
		}
		cell := Clip(cells[i], wide[i])
		if t.Columns[i].Least > 0 {
			cell = ClipLeft(cells[i], wide[i])
		}
		if t.Columns[i].Left {
			line += PadRight(cell, wide[i])
		} else {
			line += PadLeft(cell, wide[i])
		}
	}
	return line
}

// fit narrows what may be narrowed, then leaves columns out, the highest rank first.
func (t Table) fit(width int, wide []int, shown []bool) {
	for {
		over, drop := t.Margin-t.gap()-width, -1
		for i, c := range t.Columns {
			if !shown[i] {
				continue
			}
			over += wide[i] + t.gap()
			if c.Rank > 0 && (drop < 0 || c.Rank >= t.Columns[drop].Rank) {
				drop = i
			}
		}
		for i, c := range t.Columns {
			if shown[i] && c.Least > 0 && over > 0 {
				less := min(over, max(0, wide[i]-c.Least))
				wide[i], over = wide[i]-less, over-less
			}
		}
		if over <= 0 || drop < 0 {
			return
		}
		shown[drop] = false
		t.widen(wide, shown, wide[drop]+t.gap())
	}
}

// widen gives what a column leaves to the first that was narrowed: fit narrows it again
// if that is too much.
func (t Table) widen(wide []int, shown []bool, room int) {
	for i, c := range t.Columns {
		if shown[i] && c.Least > 0 {
			wide[i] += room
			return
		}
	}
}
