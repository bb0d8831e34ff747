// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"homenode/internal/render"
)

// usagePage is a terminal for texts that are not clean yet: a snapshot of a large host is
// too large to copy.
type usagePage struct{ render.Terminal }

func newUsagePage(o render.TextOptions) *usagePage { return &usagePage{o.Terminal()} }

// heading begins a section.
func (p *usagePage) heading(text string) { p.Section(render.Printable(text)) }

func (p *usagePage) wrapped(indent, text string) { p.Wrapped(indent, render.Printable(text)) }

// problems are what could not be read.
func (p *usagePage) problems(all []string) {
	if len(all) > 0 {
		p.Line("")
	}
	for _, text := range all {
		p.wrapped("", "could not read: "+text)
	}
}

// table prints rows of cells; it leaves out columns until the rest fits.
func (p *usagePage) table(columns []render.Column, rows [][]string) {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = render.Printable(cell)
		}
	}
	p.Table(render.Table{Columns: columns, Rows: rows})
}

// sorted is a sorted copy.
func sorted[T any](list []T, order func(a, b T) int) []T {
	out := slices.Clone(list)
	slices.SortStableFunc(out, order)
	return out
}
