// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"slices"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/agent/outbox"
	"homenode/internal/policy/mao"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/runner"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// period is the length of a host's windows.
const period = time.Minute

// host is a simulated server with an agent's policy, which binds what it is told to.
type host struct {
	name   string
	world  *sim.World
	loop   *runner.Loop
	orders map[string]bool // by service; one that is not there is not approved
	number uint64          // of the last batch
	fault  Fault
}

// Fault makes a service slower where it is bound, by something that no counter shows: a lock, or a
// device that is far from the node. It is what a rollout is there to find.
type Fault struct {
	Service string
	Slower  float64 // share of the latency
}

// newHosts makes the hosts: each has one replica of each service, with a load of its own.
func newHosts(c *Config, services []fleet.Service) ([]*host, error) {
	var all []*host
	for i := range c.Hosts {
		r := detmath.NewRandom(c.Seed, "loop", "host", fmt.Sprint(i))
		var specs []sim.Spec
		for _, s := range services {
			spec := s.Spec
			spec.Name, spec.Approved = s.Name, false
			spec.Demand.Rate *= 0.93 + 0.14*r.Float()
			spec.Demand.Low = 1 // the same load all day: a demonstration is short
			spec.Work.Regions = slices.Clone(spec.Work.Regions)
			specs = append(specs, spec)
		}
		w, err := sim.NewWorld(sim.Config{Machine: c.Machine, System: c.System, Linux: c.Linux, Specs: specs, Seed: r.Uint64(), Start: c.Start, Step: period})
		if err != nil {
			return nil, err
		}
		policy, err := runner.New(runner.MAO, runner.Options{MAO: mao.DefaultConfig()})
		if err != nil {
			return nil, err
		}
		h := &host{name: fmt.Sprintf("host-%02d", i+1), world: w, orders: map[string]bool{}, fault: c.Fault}
		approve := func(wl *window.Workload) bool { return h.orders[wl.Service] }
		h.loop = &runner.Loop{World: w, Machine: c.Machine, Policy: runner.Approving{Policy: policy, Approve: approve}, Actuate: actuate.DefaultConfig(), Period: period}
		all = append(all, h)
	}
	return all, nil
}

// minute is one window of the host, as its agent sends it, and what each service waited, in seconds.
func (h *host) minute() (store.Batch, map[string]float64) {
	w := h.loop.Round()
	latency := map[string]float64{}
	for _, t := range h.world.Truth() {
		if t.Latency > 0 {
			latency[t.Service] = t.Latency
		}
	}
	h.number++
	b := store.Batch{Host: h.name, Run: "loop", Number: h.number}
	for i := range w.Nodes {
		b.Nodes = append(b.Nodes, outbox.Node(&w, &w.Nodes[i]))
	}
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		wl.Approved = h.orders[wl.Service]
		job, _ := h.loop.Jobs().Job(wl.ID)
		var nodes []int
		if h.loop.Bound(wl.ID) {
			nodes = job.Nodes.IDs()
			if wl.Service == h.fault.Service {
				latency[wl.Service] *= 1 + h.fault.Slower
			}
		}
		if x, ok := latency[wl.Service]; ok {
			wl.Latency = unit.Modelled(x, "the simulator")
		}
		b.Windows = append(b.Windows, outbox.Workload(&w, wl, window.FeaturesOf(*wl, w.Length), "", nodes))
	}
	return b, latency
}

// add puts a minute of all hosts into the store.
func add(ctx context.Context, s store.Store, batches []store.Batch) error {
	n, err := s.Add(ctx, batches)
	if err == nil && n != len(batches) {
		err = fmt.Errorf("%d of %d batches were new", n, len(batches))
	}
	return err
}
