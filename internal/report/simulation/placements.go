// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/placements"
)

// Placements shows how workloads did in each important placement.
func Placements(w io.Writer, s placements.Summary, o render.TextOptions) error {
	p := o.Terminal()
	p.Line(fmt.Sprintf("%s of %d vCPUs in %s of %s; seed %d, generator %d. Every figure is modelled.",
		render.Count(s.Workloads, "workload"), s.VCPUs, render.Count(len(s.Placements), "placement"), render.Printable(s.Machine), s.Seed, s.Generator))
	p.Line("")
	t := render.Table{Columns: []render.Column{
		{Head: "nodes", Left: true}, {Head: "fastest for"}, {Head: "mean of\nthe best"}, {Head: "least of\nthe best"}, {Head: "scores", Left: true},
	}}
	for _, one := range s.Placements {
		t.Add(one.Nodes, strconv.Itoa(one.Fastest), render.Percent(one.Mean), render.Percent(one.Least), one.Scores)
	}
	p.Table(t)
	_, err := io.WriteString(w, p.String())
	return err
}
