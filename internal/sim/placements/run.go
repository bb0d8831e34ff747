// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/profiling"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/runner"
)

// Config is a data set to make.
type Config struct {
	Name         string // of the machine
	Machine      machine.Machine
	System       memsys.System
	VCPUs        int
	Links        *placement.Links // nil: direct links by distance
	Seed         uint64
	Applications int // each with catalog.SharerInputs inputs
	Noise        fleet.Noise
	Workers      int

	list placement.List
}

// MostApplications bounds a data set: some hours.
const MostApplications = 100_000

const (
	// settleFor is left out of a measurement: the share of private accesses is found step by
	// step (sim.PrivateShare).
	settleFor = 3 * time.Second
	// measureFor is the window that counts.
	measureFor = 2 * time.Second
)

// New checks a configuration and finds the placements.
func New(c Config) (Config, error) {
	if c.Applications < 1 || c.Applications > MostApplications {
		return c, fmt.Errorf("%d applications: want 1 to %d", c.Applications, MostApplications)
	}
	var err error
	if c.list, err = placement.Important(c.Machine, placement.Options{VCPUs: c.VCPUs, Links: c.Links}); err != nil {
		return c, err
	}
	if len(c.list.Placements) < 2 {
		return c, fmt.Errorf("%d vCPUs have 1 important placement on this machine: nothing differs", c.VCPUs)
	}
	return c, nil
}

// List is the important placements, in the order of Row.Placement.
func (c Config) List() placement.List { return c.list }

// Run measures every workload in every placement, a workload a cell. sink gets its rows, in
// order; tell how many are done.
func Run(ctx context.Context, c Config, sink func([]Row) error, tell func(done, all int)) error {
	if len(c.list.Placements) == 0 {
		return errors.New("run placements: the configuration was not made by New")
	}
	all := catalog.GenerateSharers(c.Seed, c.Applications)
	return runner.Run(ctx, runner.Plan[[]Row]{
		Cells: len(all), Workers: c.Workers,
		Run: func(ctx context.Context, cell int, _ func(float64)) ([]Row, error) { return c.measure(ctx, all[cell]) },
		Take: func(cell int, rows []Row) error {
			tell(cell+1, len(all))
			return sink(rows)
		},
	})
}

// measure is one workload in all placements.
func (c Config) measure(ctx context.Context, s catalog.Sharer) ([]Row, error) {
	var rows []Row
	for i, p := range c.list.Placements {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := Row{
			Application: s.Application, Kind: s.Kind, Workload: s.Name, Source: profiling.Simulator, Placement: int32(i),
			Nodes: p.Nodes.String(), CPUs: p.CPUs.String(), NodeCount: int32(p.Nodes.Len()), Scores: p.ScoreText(),
		}
		spec := s.Spec(s.Name, c.VCPUs, 0)
		if err := c.in(&row, spec, p); err != nil {
			return nil, fmt.Errorf("%s on nodes %s: %w", s.Name, p.Nodes, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// in fills a row by a world with this workload alone, tied to the placement's CPUs.
func (c Config) in(row *Row, spec sim.Spec, p placement.Placement) error {
	spec.Start.CPUs, spec.Start.Pinned = p.CPUs, true
	w, err := sim.NewWorld(sim.Config{
		Machine: c.Machine, System: systemOf(c.Machine, c.System, p.CPUs), Specs: []sim.Spec{spec}, Seed: c.Seed,
		Start: time.Unix(0, 0).UTC(), Step: time.Second,
	})
	if err != nil {
		return err
	}
	w.Run(settleFor)
	w.Window()
	w.Truth()
	w.Run(measureFor)
	win, truth := w.Window(), w.Truth()[0]
	exact := truth.Ops / truth.Seconds
	if !(exact > 0) {
		return errors.New("it does nothing there")
	}
	random := detmath.NewRandom(c.Seed, "placements", "noise", row.Workload, fmt.Sprint(row.Placement))
	row.SpeedTrue, row.Speed, row.SpeedAgain = &exact, exact*c.noise(&random), exact*c.noise(&random)
	var seen fleet.Row
	seen.Observe(&win.Workloads[0], win.Length)
	seen.Disturb(c.Noise, random)
	row.MBW, row.MSR, row.NPMR, row.RMBR = seen.MBW, seen.MSR, seen.NPMR, seen.RMBR
	row.CPU, row.RSS, row.IPC, row.LLCMPKI = seen.CPU, seen.RSS, seen.IPC, seen.LLCMPKI
	return nil
}

// noise is a factor on one measurement of a speed: that of latency, the noisiest that was
// measured. A gain's deviation is that of two measurements.
func (c Config) noise(r *detmath.Random) float64 {
	return max(0.01, 1+c.Noise.Gains.Latency/math.Sqrt2*r.Normal())
}
