// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

// adders are random loads that all add, most of them to few lines.
func adders(r *detmath.Random, sys *System, n int) []Load {
	loads := randomLoads(r, sys, n)
	for i := range loads {
		if w := loads[i].Work; w.Adds == 0 {
			w.Adds, w.Lines = r.Float(), math.Ceil(detmath.Exp(12*r.Float()))
		}
	}
	return loads
}

// Any mix settles, also with adders, and the starting point does not matter.
func TestSettles(t *testing.T) {
	_, skylake := DualSkylake()
	for _, c := range []struct {
		name  string
		sys   System
		make  func(*detmath.Random, *System, int) []Load
		seeds uint64
	}{
		{"some add", skylake, randomLoads, 3000}, {"all add", skylake, adders, 3000},
		{"all add, smt", shape(t, "smt"), adders, 1000}, {"all add, four", shape(t, "four"), adders, 1000},
	} {
		most := 0
		for seed := range c.seeds {
			r := detmath.NewRandom(seed, "settles", c.name)
			loads := c.make(&r, &c.sys, 1+r.Below(24))
			var s Solver
			cold := s.Solve(&c.sys, loads)
			most = max(most, cold.Rounds)
			var cycles []float64
			for _, l := range cold.Loads {
				cycles = append(cycles, l.Cycles)
			}
			limit := 1e-6
			if len(s.adders) == 0 {
				limit = tolerance // the true error is far smaller: convergence is quadratic
			}
			if !(cold.Residue <= limit) {
				t.Errorf("%s %d: residue %v after %d rounds", c.name, seed, cold.Residue, cold.Rounds)
			}
			for j, l := range s.Solve(&c.sys, loads).Loads {
				if off := math.Abs(l.Cycles/cycles[j] - 1); off > 1e-4 {
					t.Errorf("%s %d: load %d takes %v cycles, warm %v", c.name, seed, j, cycles[j], l.Cycles)
					break
				}
			}
		}
		t.Logf("%s: %d rounds at most", c.name, most)
	}
}

// Machines of many nodes settle, also with most of their links no unknowns, and with all
// memory on one node.
func TestManyNodesSettle(t *testing.T) {
	for _, n := range []int{9, 16, 32} {
		sys := wide(n)
		most := 0
		for seed := range uint64(30 * 9 / n) {
			r := detmath.NewRandom(seed, "many")
			loads := randomLoads(&r, &sys, 3*n)
			for i := range loads {
				if seed%3 == 0 {
					clear(loads[i].Home)
					loads[i].Home[0] = 1
				}
			}
			var s Solver
			got := s.Solve(&sys, loads)
			most = max(most, got.Rounds)
			if s.newton.size > 3*n+n+manyLinks {
				t.Errorf("%d nodes: %d unknowns", n, s.newton.size)
			}
			if !(got.Residue <= tolerance) {
				t.Errorf("%d nodes, %d: residue %v after %d rounds", n, seed, got.Residue, got.Rounds)
			}
		}
		t.Logf("%d nodes: %d rounds at most", n, most)
	}
}

// A load that hardly runs, and reads more than fits, does not make T infinite: everything is a number,
// and the others are as they are without it.
func TestHardlyRuns(t *testing.T) {
	sys := shape(t, "two")
	busy := Load{Workload: 0, Domain: 0, CPUs: 1, Threads: 1, Ops: math.Inf(1), Slow: 1, Home: []float64{1, 0},
		Work: &Work{Cycles: 1000, Instructions: 1000, Regions: []Region{{Bytes: 128 << 10, Accesses: 100, Parallelism: 2}}}}
	alone := new(Solver).Solve(&sys, []Load{busy}).Loads[0].Cycles
	for _, cpus := range []float64{1e-6, 1e-16, 1.5e-32, 1e-300, 5e-324} {
		rest := busy
		rest.Workload, rest.CPUs, rest.Threads = 1, cpus, cpus
		rest.Work = &Work{Cycles: 2000, Instructions: 2000, Regions: []Region{{Bytes: 1 << 40, Shared: true, Accesses: 128, Parallelism: 8, Stream: true}}}
		s := Solver{Keep: true}
		for round := range 3 {
			r := s.Solve(&sys, []Load{busy, rest})
			for i, l := range r.Loads {
				if math.IsNaN(l.Cycles) || math.IsInf(l.Cycles, 0) || math.IsNaN(l.Ops) || l.Cycles <= 0 {
					t.Fatalf("%v CPUs, round %d, load %d: %+v", cpus, round, i, l)
				}
			}
			if off := math.Abs(r.Loads[0].Cycles/alone - 1); cpus < 1e-12 && off > 1e-6 || r.Residue > tolerance {
				t.Errorf("%v CPUs, round %d: %v cycles, alone %v; residue %v after %d rounds", cpus, round, r.Loads[0].Cycles, alone, r.Residue, r.Rounds)
			}
		}
	}
}
