// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"

	"homenode/internal/machine/machinetest"
	"homenode/internal/sim/detmath"
)

// program is a generated program: up to four regions, read at random or from end to end,
// with 1 to 16 misses outstanding.
func program(r *detmath.Random, llc float64) *Work {
	w := &Work{Cycles: 1 + 300*r.Float(), Instructions: 1 + 300*r.Float()}
	for range 1 + r.Below(4) {
		w.Regions = append(w.Regions, Region{
			Bytes: llc / 32 * detmath.Exp(5*r.Float()), Shared: r.Float() < 0.5, Accesses: 4 * r.Float(),
			Parallelism: float64(1 + r.Below(16)), Stream: r.Float() < 0.3, Writes: math.Max(0, r.Float()-0.6),
		})
	}
	return w
}

// besides are up to three neighbours in any domain, with all or a part of its CPUs.
func besides(r *detmath.Random, sys *System) (loads []Load) {
	for n := range 1 + r.Below(3) {
		d := r.Below(len(sys.Domains))
		cpus := math.Ceil(r.Float() * sys.Domains[d].CPUs / 4)
		loads = append(loads, Load{Workload: 1 + n, Domain: d, CPUs: cpus, Threads: cpus, Ops: math.Inf(1),
			Work: program(r, sys.Domains[d].LLC), Home: randomHome(r, sys)})
	}
	return loads
}

func aloneIn(r *detmath.Random, sys *System) Load {
	cpus := math.Ceil(r.Float() * sys.Domains[0].CPUs / 4)
	return Load{CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Work: program(r, sys.Domains[0].LLC), Home: randomHome(r, sys)}
}

// slack is the error that a solution may have.
const slack = 1e-4

// A neighbour never makes a program faster: it takes cache, bandwidth and core, and gives
// nothing.
func TestNeighboursNeverHelp(t *testing.T) {
	_, skylake := DualSkylake()
	for _, sys := range []System{skylake, shape(t, "two"), shape(t, "smt"), shape(t, "opteron")} {
		worst := 0.0
		for seed := range uint64(machinetest.Seeds(200, 2000)) {
			r := detmath.NewRandom(seed, "neighbours", sys.Name)
			lone := aloneIn(&r, &sys)
			alone := new(Solver).Solve(&sys, []Load{lone}).Loads[0].Cycles
			beside := new(Solver).Solve(&sys, append([]Load{lone}, besides(&r, &sys)...)).Loads[0].Cycles
			gain := 1 - beside/alone
			if worst = max(worst, gain); gain > slack {
				t.Errorf("%s, seed %d: %.1f %% faster beside neighbours: %+v", sys.Name, seed, 100*gain, lone.Work)
			}
		}
		t.Logf("%s: at most %.2e faster", sys.Name, worst)
	}
}

// A region read at random, 1.5 times as large as the LLC, with 16 misses outstanding,
// beside a stream: it gained 8 to 26 % while hits of the LLC did not overlap.
func TestLosingCacheCosts(t *testing.T) {
	_, sys := DualSkylake()
	for parallelism := 1.0; parallelism <= 16; parallelism++ {
		llc := sys.Domains[0].LLC
		lone := Load{CPUs: 1, Threads: 1, Ops: math.Inf(1), Work: &Work{Cycles: 20, Instructions: 20,
			Regions: []Region{{Bytes: 1.5 * llc, Accesses: 1, Parallelism: parallelism}}}}
		hog := Load{Workload: 1, CPUs: 4, Threads: 4, Ops: math.Inf(1), Work: &Work{Cycles: 5, Instructions: 5,
			Regions: []Region{{Bytes: 4 * llc, Accesses: 1, Parallelism: 10, Stream: true}}}}
		alone := new(Solver).Solve(&sys, []Load{lone}).Loads[0]
		beside := new(Solver).Solve(&sys, []Load{lone, hog}).Loads[0]
		if slower := beside.Cycles/alone.Cycles - 1; slower < 0.02 || beside.LLC >= alone.LLC {
			t.Errorf("%.0f misses at once: %+.1f %% cycles with %.0f %% of the cache it had", parallelism, 100*slower, 100*beside.LLC/alone.LLC)
		}
	}
}

// More cache is never slower: alone, with a share of its own, and beside neighbours that do
// as much as before and no more (neighbours that become faster too may take bandwidth).
func TestMoreCacheIsNeverSlower(t *testing.T) {
	_, skylake := DualSkylake()
	for _, sys := range []System{skylake, shape(t, "two"), shape(t, "four"), shape(t, "smt"), shape(t, "opteron")} {
		for seed := range uint64(machinetest.Seeds(100, 1000)) {
			r := detmath.NewRandom(seed, "cache", sys.Name)
			lone, others := aloneIn(&r, &sys), besides(&r, &sys)
			first := new(Solver).Solve(&sys, append([]Load{lone}, others...))
			for i := range others {
				others[i].Ops = 0.3 * first.Loads[1+i].Ops
			}
			checkCache(t, sys, seed, "alone", func(sys *System, _ float64) []Load { return []Load{lone} })
			checkCache(t, sys, seed, "beside others", func(sys *System, _ float64) []Load { return append([]Load{lone}, others...) })
			kept := sys
			checkCache(t, sys, seed, "with a share", func(sys *System, size float64) []Load {
				*sys = kept
				capped := lone
				capped.Cache = size / 2
				return []Load{capped}
			})
		}
	}
}

// checkCache solves with an LLC of a quarter to twice its size.
func checkCache(t *testing.T, sys System, seed uint64, how string, loads func(sys *System, size float64) []Load) {
	t.Helper()
	before := math.Inf(1)
	for _, size := range []float64{0.25, 0.4, 0.6, 0.9, 1.3, 2} {
		other := sys
		other.Domains = append([]Domain{}, sys.Domains...)
		for d := range other.Domains {
			other.Domains[d].LLC *= size
		}
		l := loads(&other, size)
		cycles := new(Solver).Solve(&other, l).Loads[0].Cycles
		if cycles > before*(1+slack) {
			t.Errorf("%s, seed %d, %s: %.2f cycles with %.2f of the LLC, %.2f with less: %+v", sys.Name, seed, how, cycles, size, before, l[0].Work)
			return
		}
		before = cycles
	}
}
