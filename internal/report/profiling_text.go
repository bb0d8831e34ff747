// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Profiled prints how fast a workload is in each important placement, or what a dry run
// would measure.
func Profiled(w io.Writer, r profiling.Report, o render.TextOptions) error {
	out := o.Terminal()
	what := "workload " + r.Job.Workload
	if r.Job.Workload == "" {
		what = fmt.Sprintf("%q", r.Job.Command)
	}
	out.Wrapped("", fmt.Sprintf("%s: %s of %s with %s by %s, %s, order by seed %d. Speeds are %s.",
		profileHead[r.Outcome], render.Count(len(r.Order), "measurement"), render.Printable(what), render.Count(r.Job.VCPUs, "vCPU"), render.Printable(r.Job.Metric.String()),
		lengthOf(r.Job), r.Job.Seed, render.How(r.How)))
	out.Line("")
	t := render.Table{Columns: []render.Column{{Head: "#"}, {Head: "nodes", Left: true}, {Head: "CPUs", Left: true}, {Head: "speed/s"}, {Head: "of the\nbest"}, {Head: "two runs\ndiffer by"}, {Head: "scores", Left: true}}}
	for _, s := range r.Results {
		t.Add(strconv.Itoa(s.Number), s.Nodes, s.CPUs, render.Show(s.Speed, render.Precise), render.Show(s.OfBest, render.Percent), render.Show(s.Retest, render.Percent), s.Scores)
	}
	out.Table(t)
	out.Line("")
	if r.Outcome != "complete" && !r.Left.Known() {
		out.Wrapped("", "How long it takes is unknown: "+r.Left.From+".")
	} else if r.Outcome != "complete" {
		out.Wrapped("", fmt.Sprintf("The rest takes about %s (%s: %s).", render.Show(optional(r.Left), render.Seconds), render.How(r.Left.How), r.Left.From))
	}
	if v, ok := r.Retest.Get(); ok {
		out.Wrapped("", fmt.Sprintf("Measurements in the same placement differ by %s on average.", render.Percent(v)))
	}
	for _, n := range r.Notes {
		out.Wrapped("", render.Printable(n))
	}
	return out.Flush(w, "profile")
}

// lengthOf is "10 s each after 5 s of warm-up".
func lengthOf(j profiling.Job) string {
	if j.Metric.Ends() {
		return "a whole run each"
	}
	return fmt.Sprintf("%s each after %s of warm-up", render.Span(j.For), render.Span(j.Warm))
}

var profileHead = map[string]string{"planned": "Dry run: nothing is moved", "complete": "Complete", "unfinished": "Unfinished"}

func optional(v unit.Value[float64]) unit.Opt[float64] {
	x, ok := v.Get()
	return unit.OptOf(x, ok)
}

// PlacedText prints where a workload was put, and why.
func PlacedText(w io.Writer, r profiling.Placed, o render.TextOptions) error {
	out := o.Terminal()
	out.Wrapped("", placedHead(r))
	if len(r.Outlooks) > 0 {
		out.Line("")
		t := render.Table{Columns: []render.Column{{Head: "#"}, {Head: "nodes", Left: true}, {Head: "speed"}, {Head: "between", Left: true}, {Head: "goal", Left: true}, {Head: "from", Left: true}}}
		for _, k := range r.Outlooks {
			t.Add(strconv.Itoa(k.Number), k.Nodes, render.Ratio(k.Speed), between(k), string(k.Verdict), from(k))
		}
		out.Table(t)
		out.Line("")
		out.Wrapped("", fmt.Sprintf("Speeds are relative to the first probe. The goal is %s. Intervals hold with %s confidence; the model learned from workloads of source %q.",
			render.Ratio(r.Target), render.Percent(r.Confidence), r.Source))
	}
	for _, c := range r.Costs {
		if r.Outcome == profiling.Planned {
			out.Wrapped("", fmt.Sprintf("A probe on nodes %s would move %v, in about %s (%s).", c.Nodes, c.Bytes, render.Show(optional(c.Time), render.Seconds), render.How(c.Time.How)))
		}
	}
	for _, n := range r.Notes {
		out.Wrapped("", render.Printable(n))
	}
	return out.Flush(w, "placing")
}

func between(k profiling.Outlook) string {
	switch {
	case k.Measured:
		return "-"
	case !k.Bounded:
		return render.Unknown
	}
	return render.Range(render.Ratio(k.Low), render.Ratio(k.High))
}

func from(k profiling.Outlook) string {
	if k.Measured {
		return "probe"
	}
	return "model"
}

func placedHead(r profiling.Placed) string {
	name, reached := render.Printable(r.Workload), render.Show(r.Reached, render.Ratio)
	nodes := ""
	if r.Chosen > 0 && r.Chosen <= len(r.Outlooks) {
		nodes = r.Outlooks[r.Chosen-1].Nodes
	}
	switch r.Outcome {
	case profiling.Stays:
		return fmt.Sprintf("%s is on nodes %s, and reaches %s (%s). 'homenode restore' puts it back.", name, nodes, reached, render.How(r.How))
	case profiling.PutBack:
		return fmt.Sprintf("%s is back where it was: on nodes %s it reached %s (%s), which is below the goal.", name, nodes, reached, render.How(r.How))
	case profiling.None:
		return fmt.Sprintf("%s is back where it was: no placement meets the goal with that confidence.", name)
	case profiling.Failed:
		return fmt.Sprintf("%s is back where it was.", name)
	}
	return fmt.Sprintf("Dry run: %s would be probed in %s. Nothing is moved.", name, render.Count(len(r.Costs), "placement"))
}
