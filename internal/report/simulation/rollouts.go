// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/rollouts"
)

// Rollouts prints how rollouts of several effects went.
func Rollouts(w io.Writer, t rollouts.Trials, o render.TextOptions) error {
	p := o.Terminal()
	p.Wrapped("", fmt.Sprintf("Rollouts over %s, seeds from %d. Every figure is modelled; no machine is simulated.", render.Count(t.Setting.Replicas, "replica"), t.Seed))
	p.Line("")
	table := render.Table{Columns: []render.Column{
		{Head: "effect on\nlatency"}, {Head: "rollouts"}, {Head: "rolled\nback"}, {Head: "before\nhalf"}, {Head: "called\na gain"}, {Head: "completed"}, {Head: "bins,\nmedian"}, {Head: "how they ended", Left: true},
	}}
	for _, r := range t.Results {
		ends := make([]string, 0, len(r.Codes))
		for _, c := range slices.Sorted(maps.Keys(r.Codes)) {
			ends = append(ends, fmt.Sprintf("%s %d", c, r.Codes[c]))
		}
		table.Add(render.Fixed(100*r.Effect, 1)+"%", strconv.Itoa(r.Rollouts), render.Percent(r.RolledBack), render.Percent(r.BeforeHalf), render.Percent(r.CalledGain), render.Percent(r.Completed), render.Fixed(r.MedianBins, 0), render.List(ends))
	}
	p.Table(table)
	p.Line("")
	for _, x := range t.Targets {
		met := "met"
		if !x.Met {
			met = "NOT MET"
		}
		p.Wrapped("", fmt.Sprintf("%s: an effect of %s%%, %s: %s, limit %s", met, render.Fixed(100*x.Effect, 1), x.Name, render.Percent(x.Value), render.Percent(x.Limit)))
	}
	return p.Flush(w, "rollouts")
}
