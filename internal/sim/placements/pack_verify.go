// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"fmt"
	"slices"

	"homenode/internal/packing"
	"homenode/internal/unit"
)

// mostProbes bounds the placements that are measured of a container because they could decide.
// Those that were chosen are measured in any case.
const mostProbes = 4

// verified is ML whose choices are measured:
//
//  1. Each packed container whose placement's speed is only predicted runs there alone.
//  2. So does each container in the first placement that may meet its goal on fewer nodes than
//     the fewest that do, by its interval, up to mostProbes.
//  3. All are packed again with what was measured, until nothing is left to measure.
func (t trial) verified() (packing.Packing, int) {
	v := verifier{t: t, p: t.byThree}
	for {
		k, next, measured := v.p.ML(), slices.Clone(v.p.Containers), 0
		for _, one := range k.Placed { // 1
			if one.Speed.How != unit.HowMeasured {
				v.measure(&next[one.Container], one.Container, one.Placement)
				measured++
			}
		}
		for i := range next { // 2
			if at, ok := v.p.Undecided(next[i]); ok && probesOf(next[i]) < mostProbes {
				v.measure(&next[i], i, at)
				measured++
			}
		}
		if measured == 0 {
			return k, v.probes()
		}
		v.pack(next)
	}
}

type verifier struct {
	t trial
	p *packing.Problem
}

// measure is a run of a container alone in a placement.
func (v *verifier) measure(c *packing.Container, at, placement int) {
	q := v.t.queue[at]
	speed := q.rows[placement].Speed / q.rows[q.model.Forests[0].Probes[0]].Speed
	c.Speeds = slices.Clone(c.Speeds)
	c.Speeds[placement] = packing.Speed{Speed: speed, Low: speed, High: speed, How: unit.HowMeasured}
}

func (v *verifier) pack(containers []packing.Container) {
	p, err := v.p.With(containers)
	if err != nil {
		panic(fmt.Sprintf("pack: measured speeds are refused: %v", err)) // a row's speed is above 0
	}
	v.p = p
}

func (v *verifier) probes() (all int) {
	for _, c := range v.p.Containers {
		all += probesOf(c)
	}
	return all
}

// probesOf is how many placements of a container were measured.
func probesOf(c packing.Container) (n int) {
	for _, s := range c.Speeds {
		if s.How == unit.HowMeasured {
			n++
		}
	}
	return n
}
