// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// How figures of a result are known. There is no other way.
const How = "modelled"

// Run is every cell of a plan, so many at a time; tell is told how much is done, 0 to 1,
// and may be nil. What comes of it does not depend on the number of workers: same plan,
// same bits. The first cell that fails ends them all, and the error names it; so does the
// context's end.
func Run(ctx context.Context, plan Plan, workers int, tell func(share float64)) (Result, error) {
	if err := plan.check(); err != nil {
		return Result{}, err
	}
	jobs := plan.jobs()
	r := plan.result()
	r.Cells = make([]Cell, len(jobs))
	if err := plan.work(ctx, jobs, r.Cells, workers, tell); err != nil {
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
	cost    float64 // roughly, of any unit
}

func (j job) name() string {
	return fmt.Sprintf("machine %s, mix %s, policy %s, seed %d", j.machine.Name, j.mix.Name, j.policy, j.seed)
}

// jobs are all cells, in the order of Result.Cells. What does not fit is left out.
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

// cost is CPUs × steps: what a world of single threads takes. A window costs about as
// much as a step.
func (p *Plan) cost(m *Machine, x *Mix, policy string) float64 {
	step := x.Step
	if step == 0 {
		step = 10 * time.Millisecond
	}
	period, _ := p.period(policy, x)
	rounds := x.Lasts.Seconds()/step.Seconds() + x.Lasts.Seconds()/period.Seconds()
	return float64(m.Host.OnlineCPUs().Len()) * rounds
}

// result is one without cells.
func (p *Plan) result() Result {
	r := Result{Schema: Schema, How: How, Name: p.Name, About: p.About, Against: p.Against, Seeds: slices.Clone(p.Seeds)}
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

// work does the jobs, long ones first, so that none is left alone at the end.
func (p *Plan) work(ctx context.Context, jobs []job, cells []Cell, workers int, tell func(float64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	order := make([]int, len(jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(jobs[b].cost, jobs[a].cost) })
	queue := make(chan int, len(jobs))
	for _, i := range order {
		queue <- i
	}
	close(queue)
	shares := newShares(jobs, tell)
	var wait sync.WaitGroup
	for range min(max(1, workers), len(jobs)) {
		wait.Go(func() {
			for i := range queue {
				if ctx.Err() != nil {
					return
				}
				c, err := p.cell(ctx, jobs[i], shares.one(i))
				if err != nil {
					cancel(err)
					return
				}
				cells[i] = c
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

// shares adds up the progress of all jobs, by what they cost.
type shares struct {
	lock sync.Mutex
	jobs []job
	of   []float64
	sum  float64
	all  float64
	tell func(float64)
}

func newShares(jobs []job, tell func(float64)) *shares {
	s := &shares{jobs: jobs, of: make([]float64, len(jobs)), tell: tell}
	for _, j := range jobs {
		s.all += j.cost
	}
	return s
}

// one is told how much of a job is done.
func (s *shares) one(i int) func(share float64) {
	return func(share float64) {
		if s.tell == nil {
			return
		}
		s.lock.Lock()
		defer s.lock.Unlock()
		s.sum += float64((share - s.of[i]) * s.jobs[i].cost)
		s.of[i] = share
		s.tell(min(1, s.sum/s.all))
	}
}
