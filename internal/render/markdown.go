// SPDX-License-Identifier: Apache-2.0

package render

import "strings"

// markup is what GitHub would read as its own: table, HTML, emphasis, code, links, mentions.
var markup = strings.NewReplacer(
	`\`, `\\`, `|`, `\|`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `*`, `\*`, `_`, `\_`, "`", "\\`",
	`[`, `\[`, `]`, `\]`, `~`, `\~`, `@`, `&#64;`, `#`, `\#`, `://`, `&#58;//`,
)

// EscapeMarkdown makes text mean nothing but itself in GitHub's Markdown.
func EscapeMarkdown(text string) string { return markup.Replace(text) }

// MarkdownRow is a row of a table; the cells are Markdown already.
func MarkdownRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// Markdown is the table, with all of its columns.
func (t Table) Markdown() string {
	var heads, rule []string
	for _, c := range t.Columns {
		side := "---:"
		if c.Left {
			side = "---"
		}
		heads, rule = append(heads, EscapeMarkdown(c.Head)), append(rule, side)
	}
	text := MarkdownRow(heads...) + MarkdownRow(rule...)
	for _, row := range t.Rows {
		text += MarkdownRow(Each(row, EscapeMarkdown)...)
	}
	return text
}

// Markdown is the cell's text, bold if it is the best.
func (c Cell) Markdown() string {
	if c.Best {
		return "**" + EscapeMarkdown(c.Text) + "**"
	}
	return EscapeMarkdown(c.Text)
}

// MarkdownList is an item a line.
func MarkdownList(lines []string) string {
	text := ""
	for _, l := range lines {
		text += "- " + EscapeMarkdown(l) + "\n"
	}
	return text
}
