// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"homenode/internal/model"
	"homenode/internal/packing"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
)

// PackConfig is trials of packing: queues of drawn containers with drawn goals, packed by each
// policy, and judged in a world where all packed containers run at once.
type PackConfig struct {
	Config
	// Models are by kind of workload; each has not seen its kind.
	Models     map[string]*model.Model
	Trials     int
	Confidence float64

	base *packing.Problem
}

// The load of the trials. It was fixed before the first comparison (decision 0062).
var packGoals = []float64{0.9, 1, 1.1}

const (
	// queueFactor × as many containers as the machine has CPUs for wait in a trial's queue, so
	// that there is a choice.
	queueFactor = 2
	// MostTrials bounds an experiment: some hours.
	MostTrials = 100_000
)

// packers are the arms of a trial, in the order in which they are shown. They return how many
// placements of how many containers were measured, too.
var packers = []struct {
	name, about string
	pack        func(t trial) (k packing.Packing, probes int)
}{
	{"ml", "ML: two probes, a third where it could decide", func(t trial) (packing.Packing, int) { return t.byThree.ML(), 2*len(t.queue) + t.third }},
	{"ml-two-probes", "ML without third probes", func(t trial) (packing.Packing, int) { return t.byTwo.ML(), 2 * len(t.queue) }},
	{"ml-verified", "ML that measures what it chose, and what could decide", trial.verified},
	{"exact", "exact solver, with ML's predictions", func(t trial) (packing.Packing, int) { return t.byThree.Exact(), 2*len(t.queue) + t.third }},
	{"conservative", "one container, unpinned", unprobed(func(t trial) packing.Packing { return t.byThree.Conservative() })},
	{"aggressive", "as many as fit, unpinned", unprobed(func(t trial) packing.Packing { return t.byThree.Aggressive() })},
	{"smart-aggressive", "as many as fit, pinned to few nodes", unprobed(func(t trial) packing.Packing { return t.byThree.SmartAggressive() })},
	{optimum, "exact solver, with true speeds alone", unprobed(func(t trial) packing.Packing { return t.byTruth.Exact() })},
}

const optimum = "optimum"

func unprobed(pack func(trial) packing.Packing) func(trial) (packing.Packing, int) {
	return func(t trial) (packing.Packing, int) { return pack(t), 0 }
}

// NewPack checks a configuration.
func NewPack(c PackConfig) (PackConfig, error) {
	var err error
	if c.Config, err = New(c.Config); err != nil {
		return c, err
	}
	if c.Trials < 1 || c.Trials > MostTrials {
		return c, fmt.Errorf("%d trials: want 1 to %d", c.Trials, MostTrials)
	}
	for _, kind := range catalog.SharerKinds() {
		if err := c.checkModel(kind, c.Models[kind]); err != nil {
			return c, fmt.Errorf("model without %s: %w", kind, err)
		}
	}
	c.base, err = packing.New(c.Machine, c.Links, []packing.Container{{Name: "any", VCPUs: c.VCPUs, Goal: 1, Count: 1}})
	return c, err
}

// checkModel says why a model cannot judge workloads of a kind.
func (c PackConfig) checkModel(kind string, m *model.Model) error {
	const how = "make all with 'homenode-model folds'"
	switch {
	case m == nil:
		return errors.New("there is none: " + how)
	case m.LeftOut != kind:
		return fmt.Errorf("it was trained without %q: a model is judged on a kind that it has not seen: %s", m.LeftOut, how)
	case len(m.Forests) < 2:
		return errors.New("it has no third probe: " + how)
	}
	if err := m.Fits(model.Use{Machine: c.Name, List: c.list, Simulated: true}); err != nil {
		return err
	}
	for i := range m.Forests { // that it knows the confidence
		alike := slices.Repeat([]float64{1}, len(m.Forests[i].Probes))
		if _, err := packing.Predicted(m, alike, c.Confidence); err != nil {
			return err
		}
	}
	return nil
}

// RunPack measures every workload alone, then runs the trials. tell gets how much is done.
func RunPack(ctx context.Context, c PackConfig, tell func(done, all int)) (PackResult, error) {
	if c.base == nil {
		return PackResult{}, errors.New("run pack: the configuration was not made by NewPack")
	}
	all := catalog.GenerateSharers(c.Seed, c.Applications)
	alone := make([][]Row, 0, len(all))
	steps := len(all) + c.Trials
	err := Run(ctx, c.Config, func(rows []Row) error { alone = append(alone, rows); return nil }, func(done, _ int) { tell(done, steps) })
	if err != nil {
		return PackResult{}, err
	}
	result := newPackResult(c)
	err = runner.Run(ctx, runner.Plan[[]outcome]{
		Cells: c.Trials, Workers: c.Workers,
		Run: func(ctx context.Context, cell int, _ func(float64)) ([]outcome, error) {
			t, err := c.draw(cell, all, alone)
			if err != nil {
				return nil, fmt.Errorf("trial %d: %w", cell+1, err)
			}
			return t.run(ctx)
		},
		Take: func(cell int, arms []outcome) error {
			result.add(arms)
			tell(len(all)+cell+1, steps)
			return nil
		},
	})
	return result.done(), err
}

// trial is a queue of containers, and what is known of them.
type trial struct {
	c     PackConfig
	queue []queued
	// The same containers with predictions from two probes, from a third where it may decide,
	// and with true speeds.
	byTwo, byThree, byTruth *packing.Problem
	third                   int // containers for which a third probe was asked for
}

type queued struct {
	sharer   catalog.Sharer
	goal     float64
	baseline float64 // true speed alone in the model's baseline, operations/s
	rows     []Row
	model    *model.Model
}

// draw makes a trial's queue: in every other trial all containers are alike.
func (c PackConfig) draw(number int, all []catalog.Sharer, alone [][]Row) (trial, error) {
	r := detmath.NewRandom(c.Seed, "pack", fmt.Sprint(number))
	t := trial{c: c}
	for i := range queueFactor * (c.Machine.OnlineCPUs().Len() / c.VCPUs) {
		if i > 0 && number%2 == 0 {
			t.queue = append(t.queue, t.queue[0])
			continue
		}
		at := r.Below(len(all))
		q := queued{sharer: all[at], goal: packGoals[r.Below(len(packGoals))], rows: alone[at], model: c.Models[all[at].Kind]}
		q.baseline = trueSpeed(q.rows[q.model.Forests[0].Probes[0]])
		t.queue = append(t.queue, q)
	}
	return t, t.solveFor()
}

// solveFor makes the three problems.
func (t *trial) solveFor() error {
	two, three, truth := make([]packing.Container, len(t.queue)), make([]packing.Container, len(t.queue)), make([]packing.Container, len(t.queue))
	for i, q := range t.queue {
		one := packing.Container{Name: fmt.Sprintf("%d-%s", i+1, q.sharer.Name), VCPUs: t.c.VCPUs, Goal: q.goal, Count: 1}
		two[i], three[i], truth[i] = one, one, one
		for _, r := range q.rows {
			v := trueSpeed(r) / q.baseline
			truth[i].Speeds = append(truth[i].Speeds, packing.Speed{Speed: v, Low: v, High: v, How: unit.HowModelled})
		}
		var err error
		if two[i].Speeds, err = q.predict(0, t.c.Confidence); err != nil {
			return err
		}
	}
	var err error
	if t.byTwo, err = t.c.base.With(two); err != nil {
		return err
	}
	for i, q := range t.queue {
		three[i].Speeds = two[i].Speeds
		if _, ok := t.byTwo.Undecided(two[i]); ok {
			t.third++
			if three[i].Speeds, err = q.predict(1, t.c.Confidence); err != nil {
				return err
			}
		}
	}
	if t.byThree, err = t.c.base.With(three); err == nil {
		t.byTruth, err = t.c.base.With(truth)
	}
	return err
}

func trueSpeed(r Row) float64 { return *r.SpeedTrue }

func (q queued) predict(forest int, confidence float64) ([]packing.Speed, error) {
	var probes []float64
	for _, p := range q.model.Forests[forest].Probes {
		probes = append(probes, q.rows[p].Speed)
	}
	return packing.Predicted(q.model, probes, confidence)
}
