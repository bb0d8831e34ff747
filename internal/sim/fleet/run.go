// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	"homenode/internal/sim/runner"
)

// Progress is called when a server is done; servers finish in order.
type Progress func(done, all int)

// Sink takes the rows of a server, in the order of servers. The rows then belong to the
// sink.
type Sink func(rows []Row) error

// Run simulates a fleet, one server per cell. Outcomes are added up in the order of
// servers, as sums of floats depend on their order: the result does not depend on the
// number of workers. The first server that fails ends the run.
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
	sum, has := newSum(&c, plan), c.withMAO()
	err = runner.Run(ctx, runner.Plan[*job]{
		Cells: c.Size.Servers, Workers: c.Workers, Ahead: 4 * max(c.Workers, 1),
		Run: func(ctx context.Context, server int, _ func(float64)) (*job, error) {
			j := &job{config: &c, plan: plan, server: server, on: has[server]}
			err := j.run(ctx)
			j.specs, j.services = nil, nil // frees memory while it waits for others
			return j, err
		},
		Take: func(_ int, j *job) error {
			if err := sum.addJob(j, sink); err != nil {
				return err
			}
			if progress != nil {
				progress(sum.servers, c.Size.Servers)
			}
			return nil
		},
	})
	if err != nil {
		return Result{}, err
	}
	return sum.result(), nil
}

// sum is the sum over the fleet so far.
type sum struct {
	config        *Config
	plan          *Plan
	servers       int
	with, without half
	rows          int
	controls      int // controls among the rows
	skipped       Skipped
	compared      compared
}

// half is all servers with MAO, or all without.
type half struct {
	servers      int
	services     []runner.Tally // parallel to the plan's
	binds        Binds
	all, unbound float64
}

func newSum(c *Config, p *Plan) *sum {
	s := &sum{config: c, plan: p}
	s.with.services, s.without.services = make([]runner.Tally, len(p.Services)), make([]runner.Tally, len(p.Services))
	return s
}

func (s *sum) addJob(j *job, sink Sink) error {
	s.servers++
	s.with.addPart(&j.done.with)
	s.without.addPart(&j.done.without)
	s.compared.addServer(s.config, &j.done)
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

func (d *half) addPart(p *part) {
	if !p.ran {
		return
	}
	d.servers++
	for i := range p.services {
		d.services[p.services[i].service].Plus(&p.services[i].Tally)
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
