// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"

	"homenode/internal/sim"
	"homenode/internal/sim/runner"
	"homenode/internal/window"
)

// world is what a server needs from a sim.World.
type world interface {
	runner.World
	Truth() []sim.Truth
}

type newWorld func(sim.Config) (world, error)

func simWorld(c sim.Config) (world, error) {
	w, err := sim.NewWorld(c)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// side is a server's run with MAO or without.
type side struct {
	world world
	loop  *runner.Loop
	// Windows × workloads: all, and the unbound ones.
	all, unbound float64
}

// newSide starts a server, with a policy of its own, as policies have state. seed is that of the
// world: of arrivals, and of where Linux puts things.
func (j *job) newSide(seed uint64, policy string) (*side, error) {
	c := j.config
	w, err := c.newWorld(sim.Config{
		Machine: c.Machine, System: c.System, Linux: c.Linux, Specs: j.specs, Seed: seed, Start: runner.Start, Step: c.step(),
	})
	if err != nil {
		return nil, fmt.Errorf("server %d: %w", j.server, err)
	}
	p, err := runner.New(policy, runner.Options{MAO: c.MAO})
	if err != nil {
		return nil, err
	}
	return &side{world: w, loop: &runner.Loop{World: w, Machine: c.Machine, Policy: p, Actuate: c.Actuate, Period: c.Period}}, nil
}

// count counts the bound workloads of a window.
func (s *side) count(w window.Window) {
	for i := range w.Workloads {
		s.all++
		if !s.loop.Bound(w.Workloads[i].ID) {
			s.unbound++
		}
	}
}

// job is one server to simulate, and its outcome. Tallies are parallel to the services that
// it has, in order.
type job struct {
	config   *Config
	plan     *Plan
	server   int
	on       bool // it has MAO
	specs    []sim.Spec
	services map[string]int32 // services of its specs
	done     outcome
}

// outcome is what a server adds to the fleet's figures.
type outcome struct {
	without, with part
	rows          []Row
	skipped       Skipped
}

// part is the outcome of one side. Services are in the order of Truth.
type part struct {
	ran          bool
	services     []serviceTally
	counts       runner.Counts
	all, unbound float64
}

type serviceTally struct {
	service int32
	runner.Tally
}

// run simulates the server.
func (j *job) run(ctx context.Context) error {
	j.specs = j.plan.Specs(j.server)
	j.services = make(map[string]int32, len(j.specs))
	for i, y := range j.plan.Of(j.server) {
		j.services[j.specs[i].Service] = y.Service
	}
	if j.on && j.config.DataSet {
		return j.pair(ctx)
	}
	return j.single(ctx)
}

func (j *job) single(ctx context.Context) error {
	p, policy := &j.done.without, runner.None
	if j.on {
		p, policy = &j.done.with, runner.MAO
	}
	s, err := j.newSide(j.config.serverSeed(j.server), policy)
	if err != nil {
		return err
	}
	for i := range j.config.windows() {
		if err := ctx.Err(); err != nil {
			return err
		}
		j.warm(i, s)
		if j.on {
			s.count(s.loop.Round())
		} else {
			s.pass(i)
		}
		j.addWindow(p, i, s.world.Truth())
	}
	j.close(p, s)
	return nil
}

// passWindows is how many windows pass until a world without a policy is asked for a
// window, which lets it forget departed workloads.
const passWindows = 60

// pass is a window that no policy sees. A loop's round without a policy would change
// nothing in the world; this takes an eighth of the time.
func (s *side) pass(i int) {
	s.world.Run(s.loop.Period)
	if (i+1)%passWindows == 0 {
		s.world.Window()
	}
}

// warm discards, at the end of the warm-up, what was recorded before.
func (j *job) warm(window int, s *side) {
	if window == j.config.warmWindows() {
		s.loop.Counts, s.all, s.unbound = runner.Counts{}, 0, 0
	}
}

// addWindow adds a window's truth, after the warm-up. Truth is read window by window, with a data
// set and without, as P99 is the largest estimate within one reading.
func (j *job) addWindow(p *part, window int, truths []sim.Truth) {
	if window < j.config.warmWindows() {
		return
	}
	for i := range truths {
		p.of(j.services[truths[i].Service]).Add(&truths[i])
	}
}

// of finds a service's tally by linear search: servers have few services.
func (p *part) of(service int32) *runner.Tally {
	for i := range p.services {
		if p.services[i].service == service {
			return &p.services[i].Tally
		}
	}
	p.services = append(p.services, serviceTally{service: service})
	return &p.services[len(p.services)-1].Tally
}

func (j *job) close(p *part, s *side) {
	p.ran, p.counts, p.all, p.unbound = true, s.loop.Counts, s.all, s.unbound
}

// patient is a policy that leaves workloads alone until they have been there for some
// windows: approved workloads are observed first, as by the offline side.
func patient(p runner.Policy, windows int) runner.Policy {
	seen := map[string]int{}
	return runner.Approving{Policy: p, Approve: func(wl *window.Workload) bool {
		seen[wl.ID]++
		return wl.Approved && seen[wl.ID] > windows
	}}
}
