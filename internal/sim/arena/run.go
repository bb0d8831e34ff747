// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"context"
	"fmt"
	"slices"
	"time"

	"homenode/internal/sim/runner"
)

// Run runs every cell of a plan, workers at a time. tell receives how much is done, 0 to 1,
// and may be nil. The result does not depend on the number of workers: same plan, same
// bits. The first cell that fails ends them all, and the error names it; so does the
// context's end.
func Run(ctx context.Context, plan Plan, workers int, tell func(share float64)) (Result, error) {
	if err := plan.check(); err != nil {
		return Result{}, err
	}
	jobs, r := plan.jobs(), plan.result()
	err := runner.Run(ctx, runner.Plan[Cell]{
		Cells: len(jobs), Workers: workers, Tell: tell,
		Run: func(ctx context.Context, cell int, tell func(float64)) (Cell, error) {
			return plan.cell(ctx, jobs[cell], tell)
		},
		Take: func(_ int, c Cell) error { r.Cells = append(r.Cells, c); return nil },
		Cost: func(cell int) float64 { return jobs[cell].cost },
	})
	if err != nil {
		return Result{}, err
	}
	return r, r.Validate()
}

// job is one cell to run.
type job struct {
	machine *Machine
	mix     *Mix
	policy  string
	seed    uint64
	cost    float64 // roughly, in any unit
}

func (j job) name() string {
	return fmt.Sprintf("machine %s, mix %s, policy %s, seed %d", j.machine.Name, j.mix.Name, j.policy, j.seed)
}

// jobs lists all cells, in the order of Result.Cells. Mixes that do not fit are left out.
func (p *Plan) jobs() (all []job) {
	for i := range p.Machines {
		m := &p.Machines[i]
		for k := range p.Mixes {
			x := &p.Mixes[k]
			if x.Fits != nil && !x.Fits(m) {
				continue
			}
			for _, policy := range p.Policies {
				for _, seed := range p.Seeds {
					all = append(all, job{m, x, policy, seed, p.cost(m, x, policy)})
				}
			}
		}
	}
	return all
}

// cost is CPUs × steps, which is what a world of single threads takes. A window costs about
// as much as a step.
func (p *Plan) cost(m *Machine, x *Mix, policy string) float64 {
	step := x.Step
	if step == 0 {
		step = 10 * time.Millisecond
	}
	period, _ := p.period(policy, x)
	rounds := x.Lasts.Seconds()/step.Seconds() + x.Lasts.Seconds()/period.Seconds()
	return float64(m.Host.OnlineCPUs().Len()) * rounds
}

// result is a result without cells.
func (p *Plan) result() Result {
	r := Result{Cells: []Cell{}, Schema: Schema, How: runner.How, Name: p.Name, About: p.About, Against: p.Against, Seeds: slices.Clone(p.Seeds)}
	for i := range p.Machines {
		m := &p.Machines[i]
		r.Machines = append(r.Machines, Named{Name: m.Name, About: m.About, From: m.System.From, Nodes: len(m.Host.Nodes), CPUs: m.Host.OnlineCPUs().Len()})
	}
	for i := range p.Mixes {
		x := &p.Mixes[i]
		r.Mixes = append(r.Mixes, Named{Name: x.Name, About: x.About, LastsS: x.Lasts.Seconds(), WarmupS: x.Warmup.Seconds(), StepS: x.Step.Seconds()})
		for _, policy := range p.Policies {
			if i > 0 {
				break
			}
			n := Named{Name: policy, About: p.about(policy)}
			if d, acts := p.period(policy, x); acts {
				n.PeriodS = d.Seconds()
			}
			r.Policies = append(r.Policies, n)
		}
	}
	return r
}
