// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"math"

	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

const (
	// load is the share of the CPU time that requests to services take if all memory is
	// local: MAO's servers are at half to two thirds of theirs by day.
	load = 0.6
	// noise is how much the load varies, as in the scenarios of MAO's services.
	noise = 0.08
	// A replica has threads for half of a node's CPUs on average, so that it fits a node;
	// some have more, some less.
	leastReplica, mostReplica = 0.25, 0.75
)

// ServiceMix is replicas of the three services, in turn, with as many threads as there are
// CPUs. Their requests come at a rate that takes 0.6 of the CPU time of their threads, at
// the cost of an operation at that load with all memory local.
func ServiceMix(m machine.Machine, y memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "services")
	h, d := hostOf(m), newDeck(&r, services)
	node := float64(h.cpus) / float64(m.NodesWithCPUs().Len())
	var specs []sim.Spec
	for left := h.cpus; left > 0; {
		threads := min(left, max(1, int(node*(leastReplica+(mostReplica-leastReplica)*r.Float()))))
		left -= threads
		app := d.next()
		memory := unit.Bytes(float64(h.share(threads)) / 2)
		memory = min(memory, app.memory.all+unit.Bytes(threads)*app.memory.each)
		s := app.spec(fmt.Sprintf("%s-%02d", app.name, len(specs)+1), threads, memory)
		s.CPURequest, s.Approved = float64(threads), true
		s.Demand.Noise = noise
		specs = append(specs, s)
	}
	for i := range specs {
		s := &specs[i]
		s.Demand.Rate = load * float64(s.Threads) * y.Hz / cyclesOf(*s, &y)
	}
	return together(&r, specs)
}

// cyclesOf is the cost of an operation where the CPUs of a domain do the same, at that
// load, with local memory; on the first domain with both.
func cyclesOf(s sim.Spec, y *memsys.System) float64 {
	at := benchOf(y)
	cpus := load * y.Domains[at].CPUs
	home := make([]float64, len(y.Nodes))
	home[y.Domains[at].Node] = 1
	var solver memsys.Solver
	got := solver.Solve(y, []memsys.Load{{
		Domain: at, CPUs: cpus, Threads: y.Domains[at].CPUs, Ops: math.Inf(1), Work: workOf(s), Home: home, Slow: 1,
	}})
	return got.Loads[0].Cycles
}
