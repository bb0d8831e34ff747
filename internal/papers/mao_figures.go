// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"strings"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/scenario"
)

// maoFigures shows the paper's figures beside those of the scenarios made for its services. It
// does not judge them: no limit was fixed before the scenarios ran.
func maoFigures(results []scenario.Result) (rows []arena.Row) {
	for _, r := range results {
		for _, f := range scenario.Judge(r) {
			rows = append(rows, figure(r.Scenario, f))
		}
	}
	return rows
}

func figure(name string, f scenario.Judged) arena.Row {
	section := strings.TrimLeft(strings.TrimPrefix(f.Figure, maoPaper), ", ")
	w := arena.Row{Paper: maoPaper, Section: section, Statement: about(f.Claim), Theirs: "–", Ours: "–", Verdict: arena.NotJudged, Sentence: "Scenario " + name + "."}
	if v, ok := f.Value.Get(); ok {
		w.Theirs = percentOf(f.Claim, v)
	}
	if f.Ours.N > 0 {
		w.Ours = fmt.Sprintf("%s (%s to %s, seeds: %d)", percentOf(f.Claim, f.Ours.Median), percentOf(f.Claim, f.Ours.Min), percentOf(f.Claim, f.Ours.Max), f.Ours.N)
	}
	for _, text := range []string{f.Why, f.Note} {
		if text != "" {
			w.Sentence += " " + strings.ToUpper(text[:1]) + text[1:] + "."
		}
	}
	return w
}

// about says what a figure describes.
func about(c scenario.Claim) string {
	of := c.Service
	if of == "" {
		of = "all services"
	}
	if c.Absolute() {
		return fmt.Sprintf("The %s of %s under %s.", c.Metric, of, c.Arm)
	}
	return fmt.Sprintf("The change of %s of %s, %s against %s.", c.Metric, of, c.Arm, c.Against)
}

func percentOf(c scenario.Claim, v float64) string {
	m, _ := scenario.MetricOf(c.Metric)
	switch {
	case !c.Absolute():
		return fmt.Sprintf("%+.1f %%", 100*v)
	case m.Share:
		return fmt.Sprintf("%.2f %%", 100*v)
	}
	return fmt.Sprintf("%.4g", v)
}
