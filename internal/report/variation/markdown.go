// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"io"
	"strings"

	"homenode/internal/trial"
)

// Markdown prints a report as GitHub Markdown.
func Markdown(w io.Writer, v trial.Variation) error {
	p := newPage(v)
	var out strings.Builder
	for i, text := range p.headline {
		if i == 0 {
			text = "**" + escape(text) + "**"
		} else {
			text = escape(text)
		}
		out.WriteString(text + "\n\n")
	}
	for _, t := range p.tables {
		out.WriteString(markdownRow(t.heads))
		out.WriteString("| --- |" + strings.Repeat(" ---: |", len(t.heads)-2) + " --- |\n")
		for _, row := range t.rows {
			out.WriteString(markdownRow(row))
		}
		out.WriteString("\n")
	}
	for _, text := range p.sentences {
		out.WriteString("- " + escape(text) + "\n")
	}
	if p.line != "" { // indented: nothing in it is markup
		out.WriteString("\nFor repeatable timings:\n\n    " + p.line + "\n")
	}
	out.WriteString("\n")
	for _, text := range p.notes {
		out.WriteString("- " + escape(text) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownRow(cells []string) string {
	return "| " + strings.Join(each(cells, escape), " | ") + " |\n"
}

// markup is what GitHub would read as its own: table, HTML, emphasis, code, links, mentions.
var markup = strings.NewReplacer(
	`\`, `\\`, `|`, `\|`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `*`, `\*`, `_`, `\_`, "`", "\\`",
	`[`, `\[`, `]`, `\]`, `~`, `\~`, `@`, `&#64;`, `#`, `\#`, `://`, `&#58;//`,
)

func escape(text string) string { return markup.Replace(text) }
