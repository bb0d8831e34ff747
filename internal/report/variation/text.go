// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"io"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// Text prints a report for a terminal.
func Text(w io.Writer, v experiment.Variation, o render.TextOptions) error {
	p, out := newPage(v), o.Terminal()
	for _, text := range p.headline {
		out.Wrapped("", text)
	}
	for _, t := range p.tables {
		out.Line("")
		out.Table(t.columns())
	}
	out.Line("")
	for _, text := range p.sentences {
		out.Wrapped("", text)
	}
	if p.line != "" {
		out.Line("\nFor repeatable timings:\n\n  " + p.line)
	}
	out.Line("")
	for _, text := range p.notes {
		out.Wrapped("", text)
	}
	return out.Flush(w, "report")
}

func (t table) columns() render.Table {
	all := render.Table{Rows: t.rows}
	for i, h := range t.heads {
		all.Columns = append(all.Columns, render.Column{Head: h, Left: t.isWords(i)})
	}
	return all
}
