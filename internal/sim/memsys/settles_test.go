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
