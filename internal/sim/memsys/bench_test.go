// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"strconv"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// services are workloads with a load in each domain, whose demand changes by some per cent
// from call to call, as from minute to minute.
func services(r *detmath.Random, sys *System, n int) []Load {
	var loads []Load
	for w := range n {
		work := &Work{
			Cycles: 20000, Instructions: 25000,
			Regions: []Region{
				{Bytes: 200e3 + 4e6*r.Float(), Accesses: 300, Parallelism: 2},
				{Bytes: 1e9 * r.Float(), Shared: true, Accesses: 100, Parallelism: 3, Writes: 0.2},
			},
		}
		for d := range sys.Domains {
			cpus := sys.Domains[d].CPUs / float64(n)
			home := make([]float64, len(sys.Nodes))
			for m := range home {
				home[m] = 1 / float64(len(home))
			}
			loads = append(loads, Load{Workload: w, Domain: d, CPUs: 2 * cpus, Threads: 8, Ops: cpus * sys.Hz / 60000 * (0.3 + r.Float()), Work: work, Home: home, Slow: 1})
		}
	}
	return loads
}

func benchmark(b *testing.B, sys *System, loads []Load) {
	var s Solver
	r := detmath.NewRandom(7, "demand")
	base := make([]float64, len(loads))
	for i := range loads {
		base[i] = loads[i].Ops
	}
	s.Solve(sys, loads)
	rounds := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		for j := range loads {
			if !math.IsInf(base[j], 1) {
				loads[j].Ops = base[j] * (0.97 + 0.06*r.Float())
			}
		}
		rounds += s.Solve(sys, loads).Rounds
	}
	b.ReportMetric(float64(rounds)/float64(b.N), "rounds")
}

func BenchmarkSolve(b *testing.B) {
	_, sys := DualSkylake()
	r := detmath.NewRandom(1, "bench")
	twenty := services(&r, &sys, 20) // the same for any b.N
	b.Run("20x2", func(b *testing.B) { benchmark(b, &sys, twenty) })
	eight := shape(b, "opteron")
	b.Run("8x8", func(b *testing.B) { benchmark(b, &eight, services(&r, &eight, 8)) })
	b.Run("mixed", func(b *testing.B) { benchmark(b, &sys, randomLoads(&r, &sys, 40)) })
}

func TestNoAllocations(t *testing.T) {
	_, sys := DualSkylake()
	r := detmath.NewRandom(1, "allocations")
	loads := randomLoads(&r, &sys, 40)
	var s Solver
	s.Solve(&sys, loads)
	if n := testing.AllocsPerRun(20, func() { s.Solve(&sys, loads) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// wide is a machine of n nodes, with a link between each pair.
func wide(n int) System {
	m, _ := DualSkylake()
	node := m.Nodes[0]
	m.Nodes, m.LLCs, m.Distances, m.Packages = nil, nil, nil, nil
	for id := range n {
		node.ID = id
		node.CPUs = set.FromCPUs(id*4, id*4+1, id*4+2, id*4+3)
		m.Nodes = append(m.Nodes, node)
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: node.CPUs, Size: unit.Some(32 * unit.MiB)})
		row := make([]unit.Opt[int], n)
		for to := range row {
			row[to] = unit.Some(21)
		}
		row[id] = unit.Some(10)
		m.Distances = append(m.Distances, row)
	}
	sys, err := FromMachine(m, nil)
	if err != nil {
		panic(err)
	}
	return sys
}

// BenchmarkCold: 32 nodes in less than 50 ms.
func BenchmarkCold(b *testing.B) {
	for _, n := range []int{2, 8, 16, 32} {
		sys := wide(n)
		r := detmath.NewRandom(1, "cold")
		loads := services(&r, &sys, 8)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			rounds := 0
			for range b.N {
				rounds += new(Solver).Solve(&sys, loads).Rounds
			}
			b.ReportMetric(float64(rounds)/float64(b.N), "rounds")
		})
	}
}

// BenchmarkAdders: some microseconds per workload.
func BenchmarkAdders(b *testing.B) {
	_, sys := DualSkylake()
	for _, n := range []int{25, 50, 100, 200} {
		r := detmath.NewRandom(1, "adders")
		loads := services(&r, &sys, n)
		for i := range loads {
			loads[i].Work.Adds, loads[i].Work.Lines = 50, 64
		}
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			rounds := 0
			for range b.N {
				rounds += new(Solver).Solve(&sys, loads).Rounds
			}
			b.ReportMetric(float64(rounds)/float64(b.N), "rounds")
		})
	}
}
