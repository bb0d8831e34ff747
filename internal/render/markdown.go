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

// MarkdownHead is a table's head and the rule below it; of each column, left says whether
// its cells are words.
func MarkdownHead(heads []string, left func(i int) bool) string {
	rule := make([]string, len(heads))
	for i := range heads {
		if rule[i] = "---:"; left(i) {
			rule[i] = "---"
		}
	}
	return MarkdownRow(Each(heads, EscapeMarkdown)...) + MarkdownRow(rule...)
}

// MarkdownList is an item a line.
func MarkdownList(lines []string) string {
	text := ""
	for _, l := range lines {
		text += "- " + EscapeMarkdown(l) + "\n"
	}
	return text
}
