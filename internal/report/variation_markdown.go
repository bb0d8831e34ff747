// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// VariationMarkdown prints a report as GitHub Markdown.
func VariationMarkdown(w io.Writer, v experiment.Variation) error {
	p := newVariationPage(v)
	var out strings.Builder
	for i, text := range p.headline {
		if i == 0 {
			text = "**" + render.EscapeMarkdown(text) + "**"
		} else {
			text = render.EscapeMarkdown(text)
		}
		out.WriteString(text + "\n\n")
	}
	for _, t := range p.tables {
		out.WriteString(t.Markdown() + "\n")
	}
	out.WriteString(render.MarkdownList(p.sentences))
	if p.line != "" { // indented: nothing in it is markup
		out.WriteString("\nFor repeatable timings:\n\n    " + p.line + "\n")
	}
	out.WriteString("\n")
	out.WriteString(render.MarkdownList(p.notes))
	_, err := io.WriteString(w, out.String())
	return err
}
