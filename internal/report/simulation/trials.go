// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/fleet"
)

func gainOf(g *float64) string {
	if g == nil {
		return "unknown"
	}
	return render.Percent(*g)
}

// Trials shows what binding brought the replicas of each kind of service.
func Trials(w io.Writer, s fleet.TrialSummary, o render.TextOptions) error {
	p := o.Terminal()
	p.Line(fmt.Sprintf("%s of %d services, bound alone, on %d servers of %s; first seed %d. Every figure is modelled.",
		render.Count(s.Rows, "replica"), s.Services, s.Fleets*s.Servers, render.Printable(s.Machine), s.Seed))
	p.Line("")
	t := render.Table{Columns: []render.Column{
		{Head: "kind", Left: true}, {Head: "replicas"}, {Head: "hurt"}, {Head: "median gain,\nbound alone"}, {Head: "all of its\nserver bound"},
	}}
	for _, k := range s.Kinds {
		t.Add(k.Kind, strconv.Itoa(k.Rows), strconv.Itoa(k.Hurt), gainOf(k.Alone), gainOf(k.All))
	}
	p.Table(t)
	p.Line("")
	p.Line(fmt.Sprintf("A gain is the share of the mean latency that is saved. Two trials of a replica are %s apart (median):", gainOf(s.Apart)))
	p.Line("what no prediction can be better than. Hurt: latency rose by more than 2 % in both.")
	_, err := io.WriteString(w, p.String())
	return err
}
