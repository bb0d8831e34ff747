// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/placements"
)

// Packing shows how the policies of packing did.
func Packing(w io.Writer, r placements.PackResult, o render.TextOptions) error {
	p := o.Terminal()
	p.Line(fmt.Sprintf("%s of containers of %d vCPUs on %s; seed %d, generator %d. Every figure is modelled.",
		render.Count(r.Trials, "queue"), r.VCPUs, render.Printable(r.Machine), r.Seed, r.Generator))
	p.Line("")
	t := render.Table{Columns: []render.Column{
		{Head: "policy", Left: true}, {Head: "packed"}, {Head: "meet\ntheir goal"}, {Head: "of the\noptimum"},
		{Head: "queues with\na miss"}, {Head: "worst\nmiss"}, {Head: "nodes\nin use"}, {Head: "probes"}, {Head: "what it is", Left: true},
	}}
	for _, l := range r.Policies {
		t.Add(l.Policy, strconv.Itoa(l.Packed), strconv.Itoa(l.Met), render.Percent(l.OfOptimum), render.Percent(l.Missed), render.Percent(l.Worst), render.Fixed(l.Nodes, 2), render.Fixed(l.Probes, 2), l.About)
	}
	p.Table(t)
	p.Line("")
	p.Wrapped("", fmt.Sprintf("A goal is missed where a container is slower by more than %s, with all packed containers running. The optimum is the most containers whose true speeds alone meet their goals. Each bound of a prediction has a confidence of %s; a third probe was asked for of %s of the containers.",
		render.Percent(r.Tolerance), render.Percent(r.Confidence), render.Percent(r.Third)))
	return p.Flush(w, "trials")
}
