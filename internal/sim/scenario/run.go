// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"time"

	"homenode/internal/policy/brm"
	"homenode/internal/policy/numad"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"

	"homenode/internal/sim/runner"
)

// Progress receives how much of everything is done, 0 to 1. It may be nil.
type Progress func(share float64)

// Run runs one seed of one arm. The same arm and seed give the same result, to the bit. It
// ends with the context's error when the context ends.
func (s *Setting) Run(ctx context.Context, a Arm, seed uint64, tell Progress) (Run, error) {
	if err := ctx.Err(); err != nil { // a world of many workloads takes long
		return Run{}, err
	}
	w, err := sim.NewWorld(s.world(a, seed))
	if err != nil {
		return Run{}, fmt.Errorf("arm %s, seed %d: %w", a.Name, seed, err)
	}
	loop, err := s.loop(a, w)
	if err != nil {
		return Run{}, fmt.Errorf("arm %s: %w", a.Name, err)
	}
	b := newBook(s, seed)
	periods := int(s.Lasts / s.Period)
	warm := int((s.Warmup + s.Period - 1) / s.Period) // the period in which the warm-up ends is left out
	for i := range periods {
		if err := ctx.Err(); err != nil {
			return Run{}, err
		}
		loop.Round()
		truth := w.Truth()
		if i >= warm {
			b.addPeriod(time.Duration(i+1)*s.Period, truth, loop)
		}
		if tell != nil {
			tell(float64(i+1) / float64(periods))
		}
	}
	return b.run(loop.Counts), nil
}

// loop is an arm's policy in a world.
func (s *Setting) loop(a Arm, w runner.World) (*runner.Loop, error) {
	c := s.MAO
	if a.MAO != nil {
		c = *a.MAO
	}
	p, err := runner.New(a.Policy, runner.Options{MAO: c, Numad: numad.DefaultConfig(), BRM: brm.DefaultConfig(), Animal: vmmap.DefaultConfig(), System: s.System, Specs: s.Workloads})
	if err != nil {
		return nil, err
	}
	return &runner.Loop{World: w, Machine: s.Host, Policy: p, Actuate: runner.Actuate(a.Policy, s.Actuate), Period: s.Period}, nil
}

// RunAll runs every arm with every seed, one cell each, workers at a time. The result does
// not depend on the number of workers.
func (s *Setting) RunAll(ctx context.Context, workers int, tell Progress) (Result, error) {
	r, seeds := s.result(), len(s.Seeds)
	err := runner.Run(ctx, runner.Plan[Run]{
		Cells: len(s.Arms) * seeds, Workers: workers, Tell: tell,
		Run: func(ctx context.Context, cell int, tell func(float64)) (Run, error) {
			return s.Run(ctx, s.Arms[cell/seeds], s.Seeds[cell%seeds], tell)
		},
		Take: func(cell int, run Run) error { r.Arms[cell/seeds].Runs[cell%seeds] = run; return nil },
	})
	if err != nil {
		return Result{}, err
	}
	return r, r.Validate()
}

// result is a result without figures.
func (s *Setting) result() Result {
	r := Result{
		Schema: ResultSchema, How: runner.How, Scenario: s.Name, About: s.About, Digest: s.Digest, Machine: s.Host.Origin, From: s.System.From,
		Nodes: len(s.Host.Nodes), CPUs: s.Host.OnlineCPUs().Len(), PeriodS: s.Period.Seconds(), Seconds: s.measures().Seconds(),
		Seeds: s.Seeds, Against: s.Against,
	}
	for _, a := range s.Arms {
		r.Arms = append(r.Arms, Outcome{Name: a.Name, About: s.aboutOf(a), Policy: a.Policy, Runs: make([]Run, len(s.Seeds))})
	}
	for _, p := range s.Paper {
		_, a := s.arm(p.Arm)
		if _, b := s.arm(p.Against); a && (b || p.Absolute()) {
			r.Paper = append(r.Paper, p)
		}
	}
	return r
}

// measures is the time of a run without its warm-up, in whole periods.
func (s *Setting) measures() time.Duration {
	warm := (s.Warmup + s.Period - 1) / s.Period
	return (s.Lasts/s.Period - warm) * s.Period
}

func (s *Setting) aboutOf(a Arm) string {
	if a.About != "" {
		return a.About
	}
	for _, k := range runner.Policies() {
		if k.Name == a.Policy || a.Policy == runner.MAO && k.Name == runner.MAOB {
			return k.About
		}
	}
	return ""
}
