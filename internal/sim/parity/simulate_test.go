// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Figures are what a load does in the simulated machine.
type Figures struct {
	Cycles       float64 // per operation
	OpsPerSecond float64 // all its threads
	LocalRatio   float64 // of DRAM reads
	DRAM         float64 // reads per operation
}

// Simulated time: first until queues and shares of caches have settled, then the measured
// part. A step is short enough for both.
const (
	settle  = 2 * time.Second
	measure = 4 * time.Second
	step    = 100 * time.Millisecond
)

// labMove is the CPU time of moving a small page in the lab, 0.5–1 ms (docs/limits.md,
// "Moving memory"), in seconds per byte.
const labMove = 0.75e-3 / 4096

// worldOf is the shape's machine with these loads, and only the behaviours of Linux in the
// settings: threads are tied, and memory is placed. The periods of the guest's kernel
// follow the guest's clock, which is the model's: they are not stretched by the shape's
// time factor.
func worldOf(shape machine.Shape, specs []sim.Spec, settings linux.Settings, step time.Duration) (*sim.World, error) {
	settings.MoveSeconds = labMove
	return sim.NewWorld(sim.Config{
		Machine: shape.Machine(), System: memsys.FromShape(shape), Linux: settings, Specs: specs, Seed: 1,
		Start: time.Unix(0, 0).UTC(), Step: step,
	})
}

// Simulate gives the figures of a scenario's loads, in order.
func Simulate(shape machine.Shape, s Scenario, f Fit) ([]Figures, error) {
	var specs []sim.Spec
	for _, l := range s.Loads {
		spec, err := SpecOf(l, f, float64(shape.Model.StreamParallelism))
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	w, err := worldOf(shape, specs, linux.Settings{}, step)
	if err != nil {
		return nil, fmt.Errorf("simulate %s: %w", s.Name, err)
	}
	w.Run(settle)
	w.Truth()
	w.Run(measure)
	return inOrder(s, w.Truth())
}

func inOrder(s Scenario, truth []sim.Truth) (out []Figures, err error) {
	for _, l := range s.Loads {
		found := false
		for _, t := range truth {
			if t.Workload != "/"+l.Name {
				continue
			}
			found = true
			if !(t.Ops > 0) {
				return nil, fmt.Errorf("simulate %s: %s did nothing", s.Name, l.Name)
			}
			reads := t.Local + t.Remote
			out = append(out, Figures{Cycles: t.Cycles / t.Ops, OpsPerSecond: t.Ops / t.Seconds, LocalRatio: t.Local / reads, DRAM: reads / t.Ops})
		}
		if !found {
			return nil, fmt.Errorf("simulate %s: no %s in what came out", s.Name, l.Name)
		}
	}
	return out, nil
}

// scanDelay is numa_balancing_scan_delay, which a running load has behind it.
const scanDelay = 1.0

// Converge is the time until a share of a load's private pages are at home under NUMA
// balancing, with its threads tied there and its memory first touched elsewhere.
func Converge(shape machine.Shape, c Convergence, f Fit, share float64) (seconds float64, err error) {
	l := Load{Name: "load", Args: c.Args}
	spec, err := SpecOf(l, f, float64(shape.Model.StreamParallelism))
	if err != nil {
		return 0, err
	}
	spec.Start.Touch = set.FromNodes(c.From)
	const look = 20 * time.Millisecond
	w, err := worldOf(shape, []sim.Spec{spec}, linux.Settings{NUMABalancing: true}, look)
	if err != nil {
		return 0, fmt.Errorf("simulate %s: %w", c.Name, err)
	}
	for at := look; at < 5*time.Minute; at += look {
		w.Run(look)
		local, err := localPages(w, c.Home)
		if err != nil {
			return 0, fmt.Errorf("simulate %s: %w", c.Name, err)
		}
		if local >= share && c.Running {
			return at.Seconds() - scanDelay, nil
		}
		if local >= share {
			return at.Seconds(), nil
		}
	}
	return 0, fmt.Errorf("simulate %s: %.2f of the pages never are at home", c.Name, share)
}

func localPages(w *sim.World, home int) (float64, error) {
	win := w.Window()
	if len(win.Workloads) != 1 {
		return 0, fmt.Errorf("%d workloads in the window, want 1", len(win.Workloads))
	}
	sum, here := 0.0, 0.0
	for n, v := range win.Workloads[0].AnonByNode {
		b, ok := v.Get()
		if !ok {
			return 0, fmt.Errorf("pages of node %d are not known", n)
		}
		sum += float64(b)
		if n == home {
			here = float64(b)
		}
	}
	return here / sum, nil
}
