// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"fmt"
	"time"

	"homenode/internal/packing"
	"homenode/internal/set"
	"homenode/internal/sim"
)

const (
	// packSettle is left out: Linux's own moves of threads and memory end in it.
	packSettle  = 10 * time.Second
	packMeasure = 10 * time.Second
)

// outcome is one arm of a trial.
type outcome struct {
	placed, nodes int
	probes        int // placements that were measured, of all containers
	third         int // containers that were asked for a third probe
	wanted        int
	// short is by how much of its goal each placed container is slower; below 0: faster.
	short []float64
}

// run packs by every arm, and measures all packed containers at once.
func (t trial) run(ctx context.Context) ([]outcome, error) {
	all := make([]outcome, len(packers))
	for i, arm := range packers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		k, probes := arm.pack(t)
		o := outcome{placed: len(k.Placed), nodes: k.UsedNodes(), probes: probes, third: t.third, wanted: len(t.queue)}
		var err error
		if o.short, err = t.together(k); err != nil {
			return nil, fmt.Errorf("%s: %w", arm.name, err)
		}
		all[i] = o
	}
	return all, nil
}

// together runs a packing. Each container's speed is compared with its true speed alone in the
// baseline.
func (t trial) together(k packing.Packing) ([]float64, error) {
	if len(k.Placed) == 0 {
		return nil, nil
	}
	var specs []sim.Spec
	var used set.CPUSet
	for _, one := range k.Placed {
		spec := t.queue[one.Container].sharer.Spec(nameOf(one), t.c.VCPUs, 0)
		if one.Pinned {
			spec.Start.CPUs, spec.Start.Pinned = one.CPUs, true
		}
		specs, used = append(specs, spec), used.Union(one.CPUs)
	}
	w, err := sim.NewWorld(sim.Config{
		Machine: t.c.Machine, System: systemOf(t.c.Machine, t.c.System, used), Specs: specs, Seed: t.c.Seed,
		Start: time.Unix(0, 0).UTC(), Step: time.Second,
	})
	if err != nil {
		return nil, err
	}
	w.Run(packSettle)
	w.Truth()
	w.Run(packMeasure)
	speeds := map[string]float64{}
	for _, truth := range w.Truth() {
		speeds[truth.Workload] = truth.Ops / truth.Seconds
	}
	var short []float64
	for _, one := range k.Placed {
		q := t.queue[one.Container]
		speed, ok := speeds["/"+nameOf(one)]
		if !ok {
			return nil, fmt.Errorf("%s did not run", nameOf(one))
		}
		short = append(short, 1-speed/(q.goal*q.baseline))
	}
	return short, nil
}

func nameOf(one packing.Placed) string { return fmt.Sprintf("c%d-%d", one.Container, one.Copy) }
