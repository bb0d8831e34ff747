// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

// With any limits it settles, no load holds or moves more than its share, and the LLC holds
// no more than its size.
func TestIsolated(t *testing.T) {
	capped, throttled, bad := 0, 0, 0
	worlds(t, 1000, "isolated", func(i int, r *detmath.Random, sys System, loads []Load, free *Result) {
		before := make([]LoadResult, len(free.Loads))
		copy(before, free.Loads)
		for j := range loads {
			if r.Below(2) == 0 {
				loads[j].Cache = 0.05 + 0.9*r.Float()
			}
			if r.Below(3) == 0 {
				loads[j].Bandwidth = 0.02 + 0.6*r.Float() // below what most loads move
			}
		}
		got := new(Solver).Solve(&sys, loads)
		held := make([]float64, len(sys.Domains))
		for j, l := range loads {
			g := &got.Loads[j]
			d := &sys.Domains[l.Domain]
			held[l.Domain] += g.LLC
			if l.Cache > 0 && g.LLC > l.Cache*d.LLC*(1+1e-6) {
				t.Errorf("%d: load %d holds %v of its %v bytes", i, j, g.LLC, l.Cache*d.LLC)
			}
			if l.Cache > 0 && before[j].LLC > l.Cache*d.LLC {
				capped++
			}
			lines := 0.0
			for m := range g.DRAM {
				lines += g.Ops / sys.Hz * (g.DRAM[m] + g.Writebacks[m])
			}
			node := &sys.Nodes[d.Node]
			if most := l.Bandwidth / node.Cycles * d.CPUs / node.CPUs; l.Bandwidth > 0 && node.Cycles > 0 {
				if lines > most*(1+1e-3) {
					t.Errorf("%d: load %d moves %v of its %v lines a cycle", i, j, lines, most)
				}
				if lines > most*0.99 {
					throttled++
				}
			}
		}
		for d, bytes := range held {
			if bytes > sys.Domains[d].LLC*(1+2e-5) {
				t.Errorf("%d: LLC %d holds %v of %v bytes", i, d, bytes, sys.Domains[d].LLC)
			}
		}
		if !(got.Residue <= 1e-5) {
			bad++
			t.Logf("%d: residue %v after %d rounds", i, got.Residue, got.Rounds)
		}
	})
	if capped < 100 || throttled < 50 {
		t.Errorf("%d capped, %d throttled: too few to have tested anything", capped, throttled)
	}
	if bad > 0 {
		t.Errorf("%d do not settle", bad)
	}
}

// A share of everything is no limit: the result is the same up to rounding.
func TestWholeShare(t *testing.T) {
	worlds(t, 200, "whole", func(i int, _ *detmath.Random, sys System, loads []Load, free *Result) {
		cycles := make([]float64, len(loads))
		for j := range loads {
			cycles[j] = free.Loads[j].Cycles
			loads[j].Cache = 1
		}
		got := new(Solver).Solve(&sys, loads)
		for j := range loads {
			if alone := len(loads) == 1; alone && math.Abs(got.Loads[j].Cycles/cycles[j]-1) > 1e-4 {
				t.Errorf("%d: load %d: %v cycles, without its share of all %v", i, j, got.Loads[j].Cycles, cycles[j])
			}
		}
	})
}

// A load that reads at random from data that fit a cache gains when the share of a
// neighbour that reads through memory is limited, and the more, the smaller the share is.
func TestPolluter(t *testing.T) {
	_, sys := DualSkylake()
	llc := sys.Domains[0].LLC
	victim := Work{Cycles: 100, Instructions: 100, Regions: []Region{{Bytes: llc * 0.6, Shared: true, Accesses: 2, Parallelism: 1}}}
	loud := Work{Cycles: 20, Instructions: 20, Regions: []Region{{Bytes: llc * 40, Shared: true, Accesses: 4, Parallelism: 8, Stream: true}}}
	at := func(cache, bandwidth float64) *Result {
		return new(Solver).Solve(&sys, []Load{
			{Workload: 0, CPUs: 4, Threads: 4, Ops: math.Inf(1), Work: &victim, Slow: 1},
			{Workload: 1, CPUs: 8, Threads: 8, Ops: math.Inf(1), Work: &loud, Slow: 1, Cache: cache, Bandwidth: bandwidth},
		})
	}
	beside, less, least, slow := at(0, 0), at(0.5, 0), at(0.25, 0), at(0.25, 0.2)
	alone := new(Solver).Solve(&sys, []Load{{CPUs: 4, Threads: 4, Ops: math.Inf(1), Work: &victim, Slow: 1}})
	t.Logf("victim's cycles: alone %.0f, beside %.0f, at 50 %% %.0f, at 25 %% %.0f, and 20 %% of the bandwidth %.0f", alone.Loads[0].Cycles,
		beside.Loads[0].Cycles, less.Loads[0].Cycles, least.Loads[0].Cycles, slow.Loads[0].Cycles)
	order := []float64{alone.Loads[0].Cycles, slow.Loads[0].Cycles, least.Loads[0].Cycles, less.Loads[0].Cycles, beside.Loads[0].Cycles}
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1]*(1-1e-6) {
			t.Errorf("cycles are not in order: %v", order)
		}
	}
	if !(less.Loads[0].Cycles < 0.8*beside.Loads[0].Cycles) {
		t.Errorf("a cap of half the cache wins too little: %v", order)
	}
}
