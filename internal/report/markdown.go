// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/trial"
)

// Markdown prints the comparison as GitHub Markdown, for a README.
func Markdown(w io.Writer, c trial.Comparison) error {
	c = clean(c)
	var out strings.Builder
	for _, sentence := range headline(c) {
		fmt.Fprintf(&out, "%s\n", escape(sentence))
	}
	out.WriteString(markdownGrid(armGrid(c)))
	out.WriteString(bullets(notes(c)))
	if l, ok := longer(c); ok {
		g := longGrid(l)
		fmt.Fprintf(&out, "\n%s:\n%s", escape(g.Caption), markdownGrid(g))
	}
	out.WriteString(markdownGrid(serviceGrid(c)))
	out.WriteString("\n")
	for _, l := range legend(c, "bold:") {
		fmt.Fprintf(&out, "%s\n", escape(l))
	}
	out.WriteString(markdownTargets(c.Targets))
	out.WriteString(markdownFacts(facts(c)))
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownFacts(facts []fact) string {
	var lines []string
	for _, f := range facts {
		lines = append(lines, f.Name+": "+f.Text)
	}
	return "\nHow it was measured:\n" + bullets(lines)
}

func bullets(lines []string) string {
	var out strings.Builder
	if len(lines) > 0 {
		out.WriteString("\n")
	}
	for _, l := range lines {
		out.WriteString("- " + escape(l) + "\n")
	}
	return out.String()
}

func tableRow(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// markdownGrid has a column for the service where the grid has groups of them.
func markdownGrid(g grid) string {
	grouped := len(g.Groups) > 0 && g.Groups[0].Title != ""
	top, rule := []string{"arm"}, []string{"---"}
	if grouped {
		top, rule = append([]string{"service"}, top...), append(rule, "---")
	}
	for _, h := range g.Heads {
		top, rule = append(top, h.Long()), append(rule, "---:")
	}
	out := "\n" + tableRow(top...) + tableRow(rule...)
	for _, gr := range g.Groups {
		for i, r := range gr.Rows {
			var lead []string
			if grouped {
				lead = []string{serviceName(gr, i)}
			}
			out += tableRow(append(lead, markdownCells(r, len(g.Heads))...)...)
		}
	}
	return out
}

func serviceName(g group, row int) string {
	if row > 0 {
		return ""
	}
	return escape(g.Title) + " (" + escape(orUnknown(g.Kind)) + ")"
}

func markdownCells(r row, columns int) []string {
	cells := []string{escape(r.label(len(r.Title) + width))}
	for i := range columns {
		switch {
		case r.NotApplicable && i == 0:
			cells = append(cells, notApplicable)
		case r.NotApplicable:
			cells = append(cells, "")
		case r.Cells[i].Best:
			cells = append(cells, "**"+escape(r.Cells[i].Text)+"**")
		default:
			cells = append(cells, escape(r.Cells[i].Text))
		}
	}
	return cells
}

func markdownTargets(targets []trial.Target) string {
	if len(targets) == 0 {
		return ""
	}
	out := "\n" + tableRow("target", "wanted", "got", "", "note") + tableRow("---", "---", "---:", "---", "---")
	for _, t := range targets {
		mark := verdict(t.Met)
		if !t.Met {
			mark = "**" + mark + "**"
		}
		out += tableRow(escape(t.Name), escape(t.Want), got(t), mark, escape(t.Note))
	}
	return out
}

// markup is what GitHub would read as its own: table, HTML, emphasis, code, links, mentions.
var markup = strings.NewReplacer(
	`\`, `\\`, `|`, `\|`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `*`, `\*`, `_`, `\_`, "`", "\\`",
	`[`, `\[`, `]`, `\]`, `~`, `\~`, `@`, `&#64;`, `#`, `\#`, `://`, `&#58;//`,
)

func escape(text string) string { return markup.Replace(text) }
