// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/doctor"
)

// Markdown prints a report as GitHub Markdown, for a ticket.
func Markdown(w io.Writer, r doctor.Report) error {
	r = clean(r)
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n", escape(headline(r.Verdict)))
	if r.Verdict.Missing != "" {
		fmt.Fprintf(&out, "\nWhat is missing: %s.\n", escape(r.Verdict.Missing))
	}
	for i, f := range r.Findings {
		markdownFinding(&out, i+1, f)
	}
	if len(r.Findings) == 0 {
		out.WriteString("\nNothing was found.\n")
	}
	if shared(r.Findings) {
		out.WriteString("\n" + shareOneLoss + "\n")
	}
	if len(r.Quiet) > 0 {
		fmt.Fprintf(&out, "\nNothing found by %d of %d rules: %s.\n", len(r.Quiet), r.Rules, escape(strings.Join(r.Quiet, ", ")))
	}
	if len(r.Skipped) > 0 {
		out.WriteString("\nNot judged:\n\n")
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&out, "- %s: %s\n", escape(s.Rule), escape(s.Why+of(s.Subjects)))
	}
	if len(r.Problems) > 0 {
		out.WriteString("\nCould not be read:\n\n")
	}
	for _, text := range firstFew(r.Problems) {
		fmt.Fprintf(&out, "- %s\n", escape(text))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func markdownFinding(out *strings.Builder, n int, f doctor.Finding) {
	fmt.Fprintf(out, "\n### %d. %s\n\n%s, %s: %s\n\n| evidence | | known |\n| --- | --- | --- |\n", n, escape(f.Title), f.Severity, escape(f.Rule), escape(cost(f)))
	for _, e := range f.Evidence {
		fmt.Fprintf(out, "| %s | %s | %s |\n", escape(e.Name), escape(e.Value), escape(source(e.How, e.From)))
	}
	fmt.Fprintf(out, "\nWhy: %s\n\nDo: %s\n\n", escape(f.Cause), escape(f.Remedy))
	for _, c := range f.Commands { // indented: nothing in it is markup
		out.WriteString("    " + c + "\n")
	}
}

// markup is what GitHub would read as its own: table, HTML, emphasis, code, links, mentions.
var markup = strings.NewReplacer(
	`\`, `\\`, `|`, `\|`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`, `*`, `\*`, `_`, `\_`, "`", "\\`",
	`[`, `\[`, `]`, `\]`, `~`, `\~`, `@`, `&#64;`, `#`, `\#`, `://`, `&#58;//`,
)

func escape(text string) string { return markup.Replace(text) }
