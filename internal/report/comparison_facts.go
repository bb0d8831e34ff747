// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// facts are the lines of "how it was measured".
func facts(c experiment.Comparison) []render.Fact {
	return []render.Fact{
		{Name: "how", Text: provenance(c.How)},
		{Name: "mix", Text: render.OrUnknown(c.Name) + " on machine " + render.OrUnknown(c.Machine) + ", seed " + strconv.FormatUint(c.Seed, 10)},
		{Name: "command", Text: render.OrUnknown(c.Command)},
		{Name: "commit", Text: render.OrUnknown(c.Commit)},
		{Name: "date", Text: render.Date(c.Date)},
		{Name: "took", Text: render.Positive(c.Seconds, render.Took)},
		{Name: "repeats", Text: repeats(c.Repeats)},
		{Name: "warm-up", Text: render.Positive(c.WarmupSeconds, modelSeconds) + " in every run"},
		{Name: "peers after a longer warm-up", Text: longFact(c.Long)},
	}
}

// provenance is never left out: a modelled figure is not shown as a measured one.
func provenance(how string) string {
	if strings.HasPrefix(how, "modelled") {
		return how + ": counts are exact, cycles and model-seconds are a model's"
	}
	return render.OrUnknown(how)
}

func repeats(n int) string {
	switch {
	case n <= 0:
		return unknown
	case n == 1:
		return "1 for each arm: no spread is known"
	}
	return strconv.Itoa(n) + " for each arm"
}

// longFact is the source of the figures of the longer warm-up.
func longFact(l *experiment.Comparison) string {
	if l == nil {
		return "not measured for this load: 'make bench-peers'"
	}
	return strings.Join([]string{render.Positive(l.WarmupSeconds, modelSeconds), render.OrUnknown(l.How), repeats(l.Repeats), "commit " + render.OrUnknown(l.Commit), render.Date(l.Date)}, ", ")
}

func modelSeconds(v float64) string { return render.Precise(v) + " model-s" }

// legend explains the marks; best is the face's mark for the best of a column.
func legend(c experiment.Comparison, best string) []string {
	first := unknown
	if len(c.Arms) > 0 {
		first = c.Arms[0].Title
	}
	lines := []string{
		best + " best of its column, whichever arm that is; the ceiling takes no part, nor does an arm that moved nothing in the cost of moving.",
		"Figures are medians of the repeats; ± is how far the farthest repeat is from the median. × first arm: against " + first + ".",
		"A difference smaller than the spread means nothing.",
	}
	if text := sureness(c); text != "" {
		lines = append(lines, text)
	}
	return append(lines, "Latency is in model time and informative only: no target depends on it.")
}

// sureness is the confidence of the min–max of this many repeats; "" for an old
// comparison without intervals.
func sureness(c experiment.Comparison) string {
	for _, a := range c.Arms {
		if s := a.LocalSpread; s.CI.Known() {
			outside := 2 * math.Pow(0.5, float64(s.N)) // all repeats on one side of it
			return "With " + render.Count(s.N, "repeat") + ", min–max holds an arm's true median with " + render.Percent(1-outside) + " confidence."
		}
	}
	return ""
}

// comparisonNotes say why arms are not applicable, why a figure is not known, and what was not
// steady yet.
func comparisonNotes(c experiment.Comparison) []string {
	var out []string
	for _, a := range c.Arms {
		switch {
		case !a.Applicable:
			out = append(out, a.Title+": "+notApplicable+": "+render.OrUnknown(a.Why))
		case a.Name == balancing && !a.MoverCPUSeconds.Known():
			out = append(out, a.Title+": mover CPU "+notCountable+": in the tasks' own time")
		}
		if a.Unsteady > 0 {
			out = append(out, fmt.Sprintf("%s: the local access ratio still changed when measuring began, in %d of %s",
				a.Title, a.Unsteady, render.Count(a.LocalSpread.N, "repeat")))
		}
	}
	return out
}
