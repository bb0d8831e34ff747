// SPDX-License-Identifier: Apache-2.0

package render

// Grid is a table for pages and terminals: shell.tmpl's "grid" is the page's.
type Grid struct {
	Caption string
	Heads   []string // a line break makes a narrow column of two words
	Keys    int      // columns that name the row: at the left, and repeated where a wide table is broken
	Rows    [][]Cell
	Long    bool // for a page only, folded
}

// Cell is a figure.
type Cell struct {
	Text, Small string // Small stands below it: a range
	Class       string // of the page's style
	Best        bool   // of its column
	Partly      bool   // it covers only some of the repeats
}

// Cells are texts alone.
func Cells(texts ...string) []Cell {
	return Each(texts, func(text string) Cell { return Cell{Text: text} })
}

// Add appends a row.
func (g *Grid) Add(cells ...Cell) { g.Rows = append(g.Rows, cells) }

// AddText appends a row of texts.
func (g *Grid) AddText(texts ...string) { g.Add(Cells(texts...)...) }

// None is printed for a figure that there is none of, such as the latency of a service
// without requests.
const None = "none"

// Look is the class of a cell on a page.
func (c Cell) Look() string {
	switch {
	case c.Best:
		return "best"
	case c.Class == "" && (c.Text == None || c.Text == Unknown):
		return "gone"
	}
	return c.Class
}

// Table is the grid for a terminal: two lines for a row with small texts. A name is cut to
// name columns, another cell to cell columns.
func (g Grid) Table(name, cell int) Table {
	t := TableOf(g.Keys, name, cell, g.Heads...)
	for _, row := range g.Rows {
		first, second, two := make([]string, len(row)), make([]string, len(row)), false
		for i, c := range row {
			first[i], second[i] = c.Text, c.Small
			if c.Best {
				first[i] = "*" + c.Text
			}
			two = two || c.Small != ""
		}
		if t.Add(first...); two {
			t.Add(second...)
		}
	}
	return t
}
