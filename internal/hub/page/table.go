// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"homenode/internal/hub/query"
	"homenode/internal/render"
	"homenode/internal/store"
)

// rowsOfPage is how many rows a page shows.
const rowsOfPage = 50

// columnOf is a table's column of this name.
func columnOf(t store.Table, name string) store.Column {
	if i := slices.IndexFunc(t.Columns, func(c store.Column) bool { return c.Name == name }); i >= 0 {
		return t.Columns[i]
	}
	return store.Column{Name: name}
}

// spec is a column of a page's table.
type spec struct {
	name, head string
	how        string                 // the column that says how it is known; stands below the figure
	bar        bool                   // a share that is drawn, too
	link       func(row []any) string // nil: none
	show       func(row []any) string // nil: the cell
	small      func(row []any) string // below the cell
	fixed      bool                   // the store does not sort by it
	left       bool                   // names and words
	about      string                 // "": the store's
	class      func(row []any) string
}

// table is a table of the page.
type table struct {
	Caption, Class string // class "told": rows of words, which stand below each other on a phone
	Heads          []head
	Rows           [][]cell
	Position       string // rows 51 to 100
	Earlier, Later string // links; "": none
	Empty          string // said where there are no rows
}

type head struct {
	Text, About, To, Order string // Order: "ascending", "descending", or "": not sorted by it
	Left                   bool
}

type cell struct {
	Text, To, Small, Class string
	Head, Left, Drawn      bool
	Share                  float64
}

// tabled makes a table of an answer. sorted is the order that it has.
func (r *request) tabled(a store.Table, specs []spec, sorted string) table {
	t := table{Empty: "No rows in this time."}
	for _, s := range specs {
		t.Heads = append(t.Heads, r.head(a, s, sorted))
	}
	for _, row := range a.Rows {
		var cells []cell
		for i, s := range specs {
			c := s.cell(a, row)
			c.Head = i == 0
			cells = append(cells, c)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// head is a link that sorts: the other way where the table is sorted by it.
func (r *request) head(a store.Table, s spec, sorted string) head {
	h := head{Text: s.head, About: render.Or(s.about, columnOf(a, s.name).About), Left: s.left}
	if s.fixed || sorted == "" {
		return h
	}
	to := "-" + s.name
	switch sorted {
	case "-" + s.name:
		h.Order, to = "descending", s.name
	case s.name:
		h.Order = "ascending"
	default:
		if s.left {
			to = s.name
		}
	}
	h.To = r.with("sort", to, "offset", "")
	return h
}

func (s spec) cell(a store.Table, row []any) cell {
	c := cell{Left: s.left}
	if s.show != nil {
		c.Text = s.show(row)
	} else {
		c.Text = query.Cell(columnOf(a, s.name).Unit, a.Cell(row, s.name))
	}
	if s.link != nil {
		c.To = s.link(row)
	}
	if s.how != "" && c.Text != render.Unknown {
		c.Small = a.Text(row, s.how)
	}
	if s.small != nil {
		c.Small = s.small(row)
	}
	if s.class != nil {
		c.Class = s.class(row)
	}
	if c.Text == render.Unknown {
		c.Class = "gone"
	}
	if v, ok := a.Number(row, s.name); ok && s.bar {
		c.Drawn, c.Share = true, v
	}
	return c
}

// paged adds the links to the rows before and after.
func (r *request) paged(t table, more bool) table {
	from := r.question.Offset
	if len(t.Rows) > 0 {
		t.Position = fmt.Sprintf("rows %s to %s", render.Integer(from+1), render.Integer(from+len(t.Rows)))
	}
	if from > 0 {
		t.Earlier = r.with("offset", offset(max(0, from-rowsOfPage)))
	}
	if more {
		t.Later = r.with("offset", offset(from+rowsOfPage))
	}
	return t
}

func offset(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// order is what the URL asks for, or usual; the question gets it.
func (r *request) order(q *store.Question, usual string) string {
	sorted := render.Or(r.values.Get("sort"), usual)
	q.Sort, q.Ascending = sorted, true
	if sorted[0] == '-' {
		q.Sort, q.Ascending = sorted[1:], false
	}
	q.Most, q.Offset = rowsOfPage, r.question.Offset
	return sorted
}

// bar draws a share beside its figure.
func bar(share float64) template.HTML {
	var c render.Canvas
	c.Rect(0, 0, 64, 5, "track", 2)
	c.Rect(0, 0, 64*min(max(share, 0), 1), 5, "fill", 2)
	return template.HTML(`<svg class="bar" width="64" height="5" viewBox="0 0 64 5" aria-hidden="true">` + c.String() + "</svg>")
}
