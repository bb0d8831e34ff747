// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// Variation prints a report for a terminal.
func Variation(w io.Writer, v experiment.Variation, o render.TextOptions) error {
	p, out := newVariationPage(v), o.Terminal()
	for _, text := range p.headline {
		out.Wrapped("", text)
	}
	for _, t := range p.tables {
		out.Line("")
		out.Table(t)
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
