// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/doctor"
	"homenode/internal/render"
)

// FindingsMarkdown prints a report as GitHub Markdown, for a ticket.
func FindingsMarkdown(w io.Writer, r doctor.Report) error {
	r = render.Cleaned(r)
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n", render.EscapeMarkdown(findingsHeadline(r.Verdict)))
	if r.Verdict.Missing != "" {
		fmt.Fprintf(&out, "\nWhat is missing: %s.\n", render.EscapeMarkdown(r.Verdict.Missing))
	}
	for i, f := range r.Findings {
		markdownFinding(&out, i+1, f)
	}
	if len(r.Findings) == 0 {
		out.WriteString("\nNothing was found.\n")
	}
	if shareWorkload(r.Findings) {
		out.WriteString("\n" + shareOneLoss + "\n")
	}
	if len(r.Quiet) > 0 {
		fmt.Fprintf(&out, "\nNothing found by %d of %d rules: %s.\n", len(r.Quiet), r.Rules, render.EscapeMarkdown(strings.Join(r.Quiet, ", ")))
	}
	if len(r.Skipped) > 0 {
		out.WriteString("\nNot judged:\n\n")
	}
	out.WriteString(render.MarkdownList(render.Each(r.Skipped, notJudged)))
	if len(r.Problems) > 0 {
		out.WriteString("\nCould not be read:\n\n")
	}
	out.WriteString(render.MarkdownList(firstFew(r.Problems)))
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownFinding(out *strings.Builder, n int, f doctor.Finding) {
	fmt.Fprintf(out, "\n### %d. %s\n\n%s, %s: %s\n\n", n, render.EscapeMarkdown(f.Title), f.Severity, render.EscapeMarkdown(f.Rule), render.EscapeMarkdown(findingCost(f)))
	t := render.Table{Columns: []render.Column{{Head: "evidence", Left: true}, {Left: true}, {Head: "known", Left: true}}}
	for _, e := range f.Evidence {
		t.Add(e.Name, e.Value, render.Source(e.How, e.From))
	}
	out.WriteString(t.Markdown())
	fmt.Fprintf(out, "\nWhy: %s\n\nDo: %s\n\n", render.EscapeMarkdown(f.Cause), render.EscapeMarkdown(f.Remedy))
	for _, c := range f.Commands { // indented: nothing in it is markup
		out.WriteString("    " + c + "\n")
	}
	if f.Afterwards != "" {
		fmt.Fprintf(out, "\nThen: %s\n", render.EscapeMarkdown(f.Afterwards))
	}
}
