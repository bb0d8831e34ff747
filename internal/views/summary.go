// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"homenode/internal/agent"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// mostBinds is how many workloads of a summary are listed.
const mostBinds = 20

// Summary prints what a dry run would have done, and what it would have gained.
func Summary(w io.Writer, s agent.Summary) error {
	p := terminal()
	p.Line(fmt.Sprintf("dry run over: %s, nothing was changed", render.Count(int(s.Windows), "window")))
	var did []string
	for _, kind := range slices.Sorted(maps.Keys(s.Actions)) {
		did = append(did, fmt.Sprintf("%s %s", kind, render.Integer(s.Actions[kind])+" ×"))
	}
	if len(did) == 0 {
		p.Line("It would have changed nothing: 'homenode why WORKLOAD' says why, workload by workload.")
		return p.Flush(w, "summary")
	}
	p.Line("It would have decided: " + strings.Join(did, ", ") + ". A workload that stays where it is, because nothing is changed, is decided on again.")
	if len(s.Binds) > 0 {
		p.Line("")
		p.Table(bindTable(s))
		if more := len(s.Binds) - mostBinds + s.More; more > 0 && len(s.Binds) >= mostBinds {
			p.Line(fmt.Sprintf("and %s more", render.Count(more, "workload")))
		}
	}
	if gain, ok := s.Gain(); ok {
		v, _ := gain.Get()
		p.Line(fmt.Sprintf("Estimated gain: the local access ratio of these workloads rises by %s points on average (%s).", points(v), gain.From))
		p.Line("Whether that makes them faster is unknown before it is tried: approve one service, and compare its own figures.")
	} else {
		p.Line("The gain is unknown: no local access ratio was known.")
	}
	return p.Flush(w, "summary")
}

func points(v float64) string { return render.Fixed(100*v, 1) }

func bindTable(s agent.Summary) render.Table {
	t := render.LeftTable("WOULD BIND", "SERVICE", "TO NODES", "CPU", "LOCAL NOW", "LOCAL THERE")
	for _, b := range s.Binds[:min(len(s.Binds), mostBinds)] {
		t.Add(render.Name(b.Workload), render.Name(b.Service), render.Name(b.Nodes.String()), ratioOr(b.CPUs, 1), ratioOr(b.Local, 100), ratioOr(b.Expected, 100))
	}
	return t
}

// ratioOr prints a figure with its mark: CPUs, or percent.
func ratioOr(v unit.Value[float64], times float64) string {
	x, ok := v.Get()
	if !ok {
		return render.Unknown
	}
	text := render.Fixed(x, 2)
	if times == 100 {
		text = render.Percent(x)
	}
	return text + render.Mark(v.How)
}
