// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"homenode/internal/experiment"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// medianText also has the least and the most if there is more than one run.
func medianText(v []float64, format string) string {
	s, ok := experiment.Summarise(v)
	switch {
	case !ok:
		return "—"
	case len(v) == 1:
		return fmt.Sprintf(format, s.Median)
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Min, s.Max)
}

// ratioText is the ratio of the medians if there is no interval: for one run, or for
// a victim that did nothing at all during a move.
func ratioText(values, base []float64) string {
	v, ok := experiment.Summarise(values)
	b, too := experiment.Summarise(base)
	if !ok || !too || b.Median <= 0 {
		return "—"
	}
	r, ok := experiment.RatioOf(values, base)
	if !ok || r.CI == (experiment.Interval{}) {
		return fmt.Sprintf("%.3f", v.Median/b.Median)
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", r.Value, r.CI.Low, r.CI.High)
}

// table is a scenario in readable form: medians, least and most of the runs.
func (b benched) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, cgroup %s: %s\n", b.Name, b.Cgroup, b.About)
	for _, name := range b.Contestants {
		b.row(&out, name)
	}
	if b.Name == "running" {
		out.WriteString("  what a victim does while its own memory comes home is no target: against before, a slow-down is hidden by what has come home;\n" +
			"  the mean of before and after is too much where the pages it uses come last; a step from before to after, when the victim itself\n" +
			"  shows that its pages are at home, is the nearest to what is to be expected\n")
	}
	return out.String()
}

const under = "\n                         " // a line under a contestant's name

func (b benched) row(out io.Writer, name string) {
	some := b.counting(name)
	fmt.Fprintf(out, "  %-20s %s, move %s s, with the start of programs %s s, longest call %s ms", name, b.runs(name), medianText(values(some, seconds), "%.2f"), medianText(values(some, withStart), "%.2f"), medianText(values(some, callOf), "%.1f"))
	if stalls := values(some, stallOf); len(stalls) > 0 {
		fmt.Fprintf(out, "%svictim: longest stall %s ms, longest op before the move %s ms", under, medianText(stalls, "%.1f"), medianText(values(some, quietOf), "%.1f"))
		during := values(some, opsDuring)
		fmt.Fprintf(out, "%sops during the move: of before %s", under, ratioText(during, values(some, opsBefore)))
		if b.Name != "neutral" {
			fmt.Fprintf(out, ", of the mean of before and after %s, of the step %s", ratioText(during, values(some, opsMean)), medianText(values(some, stepOf), "%.3f"))
		}
	}
	if off := values(some, rateError); len(off) > 0 {
		fmt.Fprintf(out, "%srate asked %v/s, off by at most %.1f %%", under, some[0].Asked, 100*slices.Max(off))
	}
	fmt.Fprintf(out, "%smoved:", under)
	for _, k := range migration.Kinds() {
		if share, ok := movedShare(some, k); ok {
			fmt.Fprintf(out, " %s %.2f %%", k, 100*share)
		}
	}
	fmt.Fprintf(out, "%s\n", moversReport(some))
}

// runs gives the number of runs that count, and the result of the others.
func (b benched) runs(name string) string {
	failed := 0
	for _, s := range b.Samples {
		if s.Contestant == name && s.Failure != "" {
			failed++
		}
	}
	text := fmt.Sprintf("%d runs", len(b.counting(name)))
	if failed > 0 {
		text += fmt.Sprintf(" (%d FAILED)", failed)
	}
	return text
}

// moversReport is the movers' own reports of pages that stay, and of calls over the bound.
func moversReport(some []sample) (text string) {
	stayed, over, why := int64(0), 0, ""
	for _, s := range some {
		stayed = max(stayed, s.Stayed)
		report, _ := s.Report.Get()
		if result, _ := report.Result.Get(); result.Over > over {
			over, why = result.Over, result.OverWhy
		}
	}
	if stayed > 0 {
		text += fmt.Sprintf("; by its own count up to %d pages stay", stayed)
	}
	if over > 0 {
		text += fmt.Sprintf("; up to %d calls over the bound", over)
	}
	if why != "" {
		text += ": " + why
	}
	return text
}

func TestDecisionTable(t *testing.T) {
	one := aRun(migratesIt.name, 2, 500)
	one.OpsDuring, one.OpsBefore, one.StallMS, one.Stayed = unit.Some(0.0), unit.Some(100.0), unit.Some(2000.0), 3
	failed := one
	failed.Failure = "failed"
	got := benched{Name: "neutral", Contestants: []string{migratesIt.name}, Samples: []sample{one, failed}}.table()
	for _, want := range []string{"1 runs (1 FAILED), move 2.00 s", "longest stall 2000.0 ms", "of before 0.000\n", "moved: file 50.00 %; by its own count up to 3 pages stay\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q:\n%s", want, got)
		}
	}
	if got := ratioText([]float64{2, 2.2}, []float64{1, 1}); got != "2.100 (2.000–2.200)" {
		t.Error(got)
	}
	if got := ratioText(nil, []float64{1}); got != "—" {
		t.Error(got)
	}
}
