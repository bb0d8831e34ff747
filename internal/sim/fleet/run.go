// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"sync"
)

// Progress is told when a server is done; servers finish in order.
type Progress func(done, all int)

// Sink takes the rows of a server, in the order of servers. The rows are the
// sink's.
type Sink func(rows []Row) error

// Run simulates a fleet. The result does not depend on the number of workers.
//
//  1. Workers take the next server each. None is so far ahead that outcomes pile up.
//  2. Outcomes are added up in the order of their servers: sums of floats depend on
//     their order.
//  3. The first error, by the order of servers, ends it.
func Run(ctx context.Context, c Config, sink Sink, progress Progress) (Result, error) {
	if c.newWorld == nil {
		c.newWorld = simWorld
	}
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	plan, err := Generate(c.Seed, HostOf(c.Machine, c.System), c.Size)
	if err != nil {
		return Result{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sum := newSum(&c, plan)
	for done := range inOrder(ctx, &c, plan) {
		if done.err != nil {
			return Result{}, done.err
		}
		if err := sum.add(&done.job, sink); err != nil {
			return Result{}, err
		}
		if progress != nil {
			progress(sum.servers, c.Size.Servers)
		}
	}
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	return sum.result(), nil
}

type finished struct {
	job job
	err error
}

// inOrder runs all servers and yields them in order. Whoever stops listening
// cancels the context; workers are gone when it returns.
func inOrder(ctx context.Context, c *Config, plan *Plan) func(yield func(finished) bool) {
	return func(yield func(finished) bool) {
		workers := min(max(c.Workers, 1), c.Size.Servers)
		slots := make([]chan finished, min(4*workers, c.Size.Servers)) // 1
		for i := range slots {
			slots[i] = make(chan finished, 1)
		}
		ctx, stop := context.WithCancel(ctx)
		next := make(chan int)
		free := make(chan struct{}, len(slots))
		var all sync.WaitGroup
		all.Go(func() { deal(ctx, next, free, c.Size.Servers) })
		has := c.withMAO()
		for range workers {
			all.Go(func() {
				for i := range next {
					slots[i%len(slots)] <- simulate(ctx, c, plan, i, has[i])
				}
			})
		}
		defer all.Wait()
		defer stop()
		for i := range c.Size.Servers { // 2
			select {
			case done := <-slots[i%len(slots)]:
				<-free
				if !yield(done) || done.err != nil { // 3
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// deal hands out servers, as many at a time as there are slots.
func deal(ctx context.Context, next chan<- int, free chan<- struct{}, servers int) {
	defer close(next)
	for i := range servers {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

func simulate(ctx context.Context, c *Config, plan *Plan, server int, on bool) finished {
	j := job{config: c, plan: plan, server: server, on: on}
	err := j.run(ctx)
	j.specs, j.services = nil, nil // it may wait for others
	return finished{j, err}
}

// sum is the fleet so far.
type sum struct {
	config        *Config
	plan          *Plan
	servers       int
	with, without half
	rows          int
	controls      int // of the rows
	skipped       Skipped
	compared      compared
}

// half is all servers with MAO, or all without.
type half struct {
	servers      int
	services     []Tally // parallel to the plan's
	binds        Binds
	all, unbound float64
}

func newSum(c *Config, p *Plan) *sum {
	s := &sum{config: c, plan: p}
	s.with.services, s.without.services = make([]Tally, len(p.Services)), make([]Tally, len(p.Services))
	return s
}

func (s *sum) add(j *job, sink Sink) error {
	s.servers++
	s.with.add(&j.done.with)
	s.without.add(&j.done.without)
	s.compared.add(s.config, &j.done)
	s.skipped.plus(j.done.skipped)
	s.rows += len(j.done.rows)
	for i := range j.done.rows {
		if !j.done.rows[i].Bound {
			s.controls++
		}
	}
	if sink == nil || len(j.done.rows) == 0 {
		return nil
	}
	if err := sink(j.done.rows); err != nil {
		return fmt.Errorf("rows of server %d: %w", j.server, err)
	}
	return nil
}

func (d *half) add(p *part) {
	if !p.ran {
		return
	}
	d.servers++
	for i := range p.services {
		d.services[p.services[i].service].plus(&p.services[i].Tally)
	}
	d.all += p.all
	d.unbound += p.unbound
	d.binds.Binds += p.counts.Binds
	d.binds.Asides += p.counts.Asides
	d.binds.Unbinds += p.counts.Unbinds
	d.binds.Refused += p.counts.Refused
	d.binds.MovedB += p.counts.Moved
	d.binds.MoverCPUS += p.counts.CPU
}
