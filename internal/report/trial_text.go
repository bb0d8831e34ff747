// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/profiling"
	"homenode/internal/render"
)

// Trial prints what binding a workload brings, or what a dry run would measure.
func Trial(w io.Writer, r profiling.TrialReport, o render.TextOptions) error {
	out := o.Terminal()
	out.Wrapped("", trialHead(r))
	out.Line("")
	t := render.Table{Columns: []render.Column{{Head: "workload is", Left: true}, {Head: "measured"}, {Head: "speed/s"}, {Head: "least"}, {Head: "most"}}}
	for arm, name := range []string{"unbound", "bound to " + nodesText(r.Nodes)} {
		if s := r.Speeds[arm]; s != nil {
			t.Add(name, render.Count(s.N, "time"), render.Precise(s.Median), render.Precise(s.Min), render.Precise(s.Max))
		}
	}
	if len(t.Rows) > 0 {
		out.Table(t)
		out.Line("")
	}
	for _, line := range trialFindings(r) {
		out.Wrapped("", line)
	}
	if r.Outcome == "planned" || r.Outcome == "unfinished" {
		out.Wrapped("", fmt.Sprintf("The rest takes about %s (%s: %s).", render.Show(optional(r.Left), render.Seconds), render.How(r.Left.How), r.Left.From))
	}
	for _, n := range r.Notes {
		out.Wrapped("", render.Printable(n))
	}
	return out.Flush(w, "experiment")
}

// nodesText is "node 1" or "nodes 0-1", of a list as the kernel writes it.
func nodesText(nodes string) string {
	if strings.ContainsAny(nodes, "-,") {
		return "nodes " + nodes
	}
	return "node " + nodes
}

func trialHead(r profiling.TrialReport) string {
	j := r.Job
	head := map[string]string{
		"planned": "Dry run: nothing is changed", "complete": "Complete: the workload is where it was", "unfinished": "Unfinished", "stopped": "Stopped: the workload is where it was",
	}[r.Outcome]
	return fmt.Sprintf("%s. %s: unbound against bound to %s, which %s chose; %s of each by %s, %s, order by seed %d. Speeds are %s.", head,
		render.Printable(j.Workload), nodesText(r.Nodes), r.Why, render.Count(j.Repeats, "measurement"), render.Printable(j.Metric.String()), lengthOf(j), j.Seed, render.How(r.How))
}

// trialFindings say what the trial shows.
func trialFindings(r profiling.TrialReport) (lines []string) {
	if v, ok := r.Time.Value.Get(); ok {
		lines = append(lines, fmt.Sprintf("An operation takes %s time while the workload is bound%s: %s.", lessOrMore(v), within(r.Time.CI), shownText[r.Shown]))
	}
	if v, ok := r.CPUTime.Value.Get(); ok {
		lines = append(lines, fmt.Sprintf("It takes %s CPU time%s.", lessOrMore(v), within(r.CPUTime.CI)))
	}
	first, ok1 := r.Halves[0].Value.Get()
	second, ok2 := r.Halves[1].Value.Get()
	if ok1 && ok2 {
		lines = append(lines, fmt.Sprintf("The first half of the measurements alone says %s, the second %s.", lessOrMore(first), lessOrMore(second)))
	}
	return lines
}

var shownText = map[profiling.Shown]string{
	profiling.ShownGain: "binding helps it", profiling.ShownLoss: "binding hurts it", profiling.ShownNothing: "the measurements do not show that binding changes anything",
	profiling.ShownTooFew: "there are too few measurements to tell that from noise", profiling.ShownUnknown: "unknown",
}

// lessOrMore is "3.2% less" of a gain, and "3.2% more" of a loss.
func lessOrMore(gain float64) string {
	if gain < 0 {
		return render.Percent(-gain) + " more"
	}
	return render.Percent(gain) + " less"
}

// within is " (95% interval: 1.0% more to 3.0% less)".
func within(ci experiment.Interval) string {
	if !ci.Known() {
		return ""
	}
	return fmt.Sprintf(" (%s interval: %s to %s)", render.Percent(ci.Coverage), lessOrMore(ci.Low), lessOrMore(ci.High))
}
