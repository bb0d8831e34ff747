// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"homenode/internal/doctor"
	"homenode/internal/render"
	"homenode/internal/render/words"
	"homenode/internal/unit"
)

// findingsWidth is the most columns that Text uses, except for commands.
const findingsWidth = 96

// Findings prints a report for a terminal. Its first line is the verdict.
func Findings(w io.Writer, r doctor.Report, o render.TextOptions) error {
	r = render.Cleaned(r)
	o.Width, o.Fold = min(cmp.Or(o.Width, findingsWidth), findingsWidth), false // a command stays in one line
	p := &findingsPrinter{o.Terminal()}
	p.Wrapped("", findingsHeadline(r.Verdict))
	if r.Verdict.Missing != "" {
		p.Wrapped("  ", "What is missing: "+r.Verdict.Missing+".")
	}
	for _, n := range r.Verdict.Numbers {
		p.Wrapped("  ", words.Number(n))
	}
	for i, f := range r.Findings {
		p.finding(i+1, f)
	}
	if len(r.Findings) == 0 {
		p.Line("\nNothing was found.")
	}
	if shareWorkload(r.Findings) {
		p.Line("")
		p.Paragraph("", "", shareOneLoss)
	}
	p.rest(r)
	return p.Flush(w, "report")
}

const shareOneLoss = "Findings about one workload are often one loss seen from several sides: they share it, and their costs add up to no more than what is lost."

func findingsHeadline(v doctor.Verdict) string {
	how := ""
	if v.How != unit.HowUnknown {
		how = fmt.Sprintf(" (%v)", v.How)
	}
	return fmt.Sprintf("Is NUMA this machine's bottleneck? %s%s: %s.", v.Answer, how, strings.TrimSuffix(v.Why, "."))
}

// shareWorkload says that two findings are about the same workload.
func shareWorkload(all []doctor.Finding) bool {
	seen := map[string]bool{}
	for _, f := range all {
		if w := f.Subject.Workload; w != "" && seen[w] {
			return true
		}
		seen[f.Subject.Workload] = true
	}
	return false
}

// findingCost is the cost of a finding, in a clause.
func findingCost(f doctor.Finding) string {
	if f.Risk != "" {
		return "risk: " + f.Risk
	}
	v, ok := f.Cost.Get()
	if !ok {
		return "cost unknown: " + f.Cost.From
	}
	return fmt.Sprintf("costs about %s CPUs' worth of time (%s)", render.Amount(v), render.Source(f.Cost.How, f.Cost.From))
}

// rest is the rules without a finding.
func (p *findingsPrinter) rest(r doctor.Report) {
	p.Line("")
	if len(r.Quiet) > 0 {
		p.Wrapped("", fmt.Sprintf("Nothing found by %d of %d rules: %s.", len(r.Quiet), r.Rules, strings.Join(r.Quiet, ", ")))
	}
	p.list("Not judged:", render.Each(r.Skipped, notJudged))
	p.list("Could not be read:", firstFew(r.Problems))
}

func (p *findingsPrinter) list(title string, lines []string) {
	if len(lines) > 0 {
		p.Line(title)
	}
	for _, l := range lines {
		p.Wrapped("  ", l)
	}
}

func notJudged(s doctor.Skipped) string { return s.Rule + ": " + s.Why + of(s.Subjects) }

// firstFew are the problems that are shown: a broken tree can have thousands.
func firstFew(problems []string) []string {
	const most = 20
	if n := len(problems); n > most {
		return append(slices.Clone(problems[:most]), fmt.Sprintf("and %d more", n-most))
	}
	return problems
}

// of names the first few subjects.
func of(subjects []string) string {
	const most = 4
	if len(subjects) == 0 {
		return ""
	}
	return " (" + render.ListFew(subjects, most) + ")"
}

type findingsPrinter struct{ render.Terminal }

func (p *findingsPrinter) finding(n int, f doctor.Finding) {
	p.Line("")
	p.Paragraph("", "   ", fmt.Sprintf("%d. %s [%s, %s]", n, f.Title, f.Severity, f.Rule))
	p.Wrapped("   ", findingCost(f))
	name, value := 0, 0
	for _, e := range f.Evidence {
		name, value = max(name, render.Width(e.Name)), max(value, render.Width(e.Value))
	}
	name, value = min(name, 44), min(value, 34)
	for _, e := range f.Evidence {
		p.Paragraph("   ", "       ", padded(e.Name, name)+"\u00a0 "+padded(e.Value, value)+"\u00a0 "+render.Source(e.How, e.From))
	}
	p.Paragraph("   ", "        ", "why: "+f.Cause)
	p.Paragraph("   ", "        ", "do:\u00a0 "+f.Remedy)
	for _, c := range f.Commands {
		p.Line("   $ " + c)
	}
	if f.Afterwards != "" {
		p.Paragraph("   ", "        ", "then: "+f.Afterwards)
	}
}

// padded is a column of evidence: no-break spaces follow the text, so that no line ends
// in blanks.
func padded(text string, n int) string {
	return text + strings.Repeat("\u00a0", max(0, n-render.Width(text)))
}
