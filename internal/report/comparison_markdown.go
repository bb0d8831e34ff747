// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// ComparisonMarkdown prints the comparison as GitHub Markdown, for a README.
func ComparisonMarkdown(w io.Writer, c experiment.Comparison) error {
	c = cleanComparison(c)
	var out strings.Builder
	for _, sentence := range comparisonHeadline(c) {
		fmt.Fprintf(&out, "%s\n", render.EscapeMarkdown(sentence))
	}
	out.WriteString(markdownGrid(armGrid(c)))
	if all := comparisonNotes(c); len(all) > 0 {
		out.WriteString("\n" + render.MarkdownList(all))
	}
	if l, ok := longer(c); ok {
		g := longGrid(l)
		fmt.Fprintf(&out, "\n%s:\n%s", render.EscapeMarkdown(g.Caption), markdownGrid(g))
	}
	out.WriteString(markdownGrid(serviceGrid(c)))
	out.WriteString("\n")
	for _, l := range legend(c, "bold:") {
		fmt.Fprintf(&out, "%s\n", render.EscapeMarkdown(l))
	}
	out.WriteString(markdownTargets(c.Targets))
	out.WriteString(markdownFacts(facts(c)))
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownFacts(facts []render.Fact) string {
	var lines []string
	for _, f := range facts {
		lines = append(lines, f.Name+": "+f.Text)
	}
	return "\nHow it was measured:\n\n" + render.MarkdownList(lines)
}

// markdownGrid has a column for the service if the grid has a group for each.
func markdownGrid(g grid) string {
	grouped := len(g.Groups) > 0 && g.Groups[0].Title != ""
	top, rule := []string{"arm"}, []string{"---"}
	if grouped {
		top, rule = append([]string{"service"}, top...), append(rule, "---")
	}
	for _, h := range g.Heads {
		top, rule = append(top, h.Long()), append(rule, "---:")
	}
	out := "\n" + render.MarkdownRow(top...) + render.MarkdownRow(rule...)
	for _, gr := range g.Groups {
		for i, r := range gr.Rows {
			var lead []string
			if grouped {
				lead = []string{serviceName(gr, i)}
			}
			out += render.MarkdownRow(append(lead, markdownCells(r, len(g.Heads))...)...)
		}
	}
	return out
}

func serviceName(g group, row int) string {
	if row > 0 {
		return ""
	}
	return render.EscapeMarkdown(g.Title) + " (" + render.EscapeMarkdown(render.OrUnknown(g.Kind)) + ")"
}

func markdownCells(r armRow, columns int) []string {
	cells := []string{render.EscapeMarkdown(r.label(len(r.Title) + comparisonWidth))}
	for i := range columns {
		switch {
		case r.NotApplicable && i == 0:
			cells = append(cells, notApplicable)
		case r.NotApplicable:
			cells = append(cells, "")
		default:
			cells = append(cells, r.Cells[i].Markdown())
		}
	}
	return cells
}

func markdownTargets(targets []experiment.Target) string {
	if len(targets) == 0 {
		return ""
	}
	out := "\n" + render.MarkdownRow("target", "wanted", "got", "", "note") + render.MarkdownRow("---", "---", "---:", "---", "---")
	for _, t := range targets {
		mark := metOrNot(t.Met)
		if !t.Met {
			mark = "**" + mark + "**"
		}
		out += render.MarkdownRow(render.EscapeMarkdown(t.Name), render.EscapeMarkdown(t.Want), got(t), mark, render.EscapeMarkdown(t.Note))
	}
	return out
}
