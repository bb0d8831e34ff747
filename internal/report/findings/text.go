// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"homenode/internal/doctor"
	"homenode/internal/render/words"
	"homenode/internal/report"
	"homenode/internal/unit"
)

// width is the most columns Text uses, commands and single long words apart.
const width = 96

// Text prints a report for a terminal. Its first line is the verdict.
func Text(w io.Writer, r doctor.Report) error {
	r = clean(r)
	p := &printer{}
	p.wrapped("", "  ", headline(r.Verdict))
	if r.Verdict.Missing != "" {
		p.wrapped("  ", "  ", "What is missing: "+r.Verdict.Missing+".")
	}
	for _, n := range r.Verdict.Numbers {
		p.wrapped("  ", "    ", words.Number(n))
	}
	for i, f := range r.Findings {
		p.finding(i+1, f)
	}
	if len(r.Findings) == 0 {
		p.line("\nNothing was found.")
	}
	if shared(r.Findings) {
		p.line("")
		p.wrapped("", "", shareOneLoss)
	}
	p.rest(r)
	_, err := io.WriteString(w, p.String())
	return err
}

const shareOneLoss = "Findings about one workload are often one loss seen from several sides: they share it, and their costs add up to no more than what is lost."

func headline(v doctor.Verdict) string {
	how := ""
	if v.How != unit.HowUnknown {
		how = fmt.Sprintf(" (%v)", v.How)
	}
	return fmt.Sprintf("Is NUMA this machine's bottleneck? %s%s: %s.", v.Answer, how, strings.TrimSuffix(v.Why, "."))
}

// shared says that two findings are about the same workload.
func shared(all []doctor.Finding) bool {
	seen := map[string]bool{}
	for _, f := range all {
		if w := f.Subject.Workload; w != "" && seen[w] {
			return true
		}
		seen[f.Subject.Workload] = true
	}
	return false
}

// cost is what a finding costs, in a clause.
func cost(f doctor.Finding) string {
	if f.Risk != "" {
		return "risk: " + f.Risk
	}
	v, ok := f.Cost.Get()
	if !ok {
		return "cost unknown: " + f.Cost.From
	}
	return fmt.Sprintf("costs about %.3g CPUs' worth of time (%s)", v, source(f.Cost.How, f.Cost.From))
}

// rest is what the rules said that found nothing.
func (p *printer) rest(r doctor.Report) {
	p.line("")
	if len(r.Quiet) > 0 {
		p.wrapped("", "  ", fmt.Sprintf("Nothing found by %d of %d rules: %s.", len(r.Quiet), r.Rules, strings.Join(r.Quiet, ", ")))
	}
	if len(r.Skipped) > 0 {
		p.line("Not judged:")
	}
	for _, s := range r.Skipped {
		p.wrapped("  ", "    ", s.Rule+": "+s.Why+of(s.Subjects))
	}
	if len(r.Problems) > 0 {
		p.line("Could not be read:")
	}
	for _, text := range firstFew(r.Problems) {
		p.wrapped("  ", "    ", text)
	}
}

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
	if n := len(subjects); n > most {
		return fmt.Sprintf(" (%s and %d more)", strings.Join(subjects[:most], ", "), n-most)
	}
	return " (" + strings.Join(subjects, ", ") + ")"
}

// printer gathers the text.
type printer struct{ strings.Builder }

func (p *printer) line(text string) { p.WriteString(strings.TrimRight(text, " ") + "\n") }

func (p *printer) finding(n int, f doctor.Finding) {
	p.line("")
	p.wrapped("", "   ", fmt.Sprintf("%d. %s [%s, %s]", n, f.Title, f.Severity, f.Rule))
	p.wrapped("   ", "     ", cost(f))
	name, value := 0, 0
	for _, e := range f.Evidence {
		name, value = max(name, report.Runes(e.Name)), max(value, report.Runes(e.Value))
	}
	name, value = min(name, 44), min(value, 34)
	for _, e := range f.Evidence {
		p.wrapped("   ", "       ", padded(e.Name, name)+"\u00a0 "+padded(e.Value, value)+"\u00a0 "+source(e.How, e.From))
	}
	p.wrapped("   ", "        ", "why: "+f.Cause)
	p.wrapped("   ", "        ", "do:\u00a0 "+f.Remedy)
	for _, c := range f.Commands {
		p.line("   $ " + c)
	}
}

// padded is a column: the blanks in it hold together, so that wrapped leaves them.
func padded(text string, n int) string {
	return text + strings.Repeat("\u00a0", max(0, n-report.Runes(text)))
}

// wrapped prints a paragraph: first and next are the indents. A no-break space
// is printed as a blank, and no line breaks there.
func (p *printer) wrapped(first, next, text string) {
	line, empty := first, true
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' }) {
		if !empty && report.Runes(line)+1+report.Runes(strings.TrimRight(word, "\u00a0")) > width {
			p.line(unbroken(line))
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.line(unbroken(line))
}

func unbroken(line string) string { return strings.ReplaceAll(line, "\u00a0", " ") }
