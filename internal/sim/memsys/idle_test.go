// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

// Loads come and go, and some have no CPUs at all for a while, or no demand. There is
// always a steady state, it is reached, and a load that does nothing takes nothing.
func TestLoadsWithoutCPUs(t *testing.T) {
	_, skylake := DualSkylake()
	for _, sys := range []System{skylake, shape(t, "smt"), shape(t, "four")} {
		for seed := range uint64(600) {
			r := detmath.NewRandom(seed, "idle", sys.Name)
			s := Solver{Keep: seed%2 == 1}
			loads := randomLoads(&r, &sys, 1+r.Below(6))
			for step := range 8 {
				silence(&r, loads)
				checkIdle(t, seed, step, &sys, loads, s.Solve(&sys, loads))
			}
			if t.Failed() {
				return
			}
		}
	}
}

// silence gives loads other CPUs, and some of them none, or no demand.
func silence(r *detmath.Random, loads []Load) {
	for i := range loads {
		l := &loads[i]
		l.CPUs, l.Ops = 8*r.Float(), math.Inf(1)
		l.Threads = l.CPUs
		switch r.Below(4) {
		case 0:
			l.CPUs = 0
		case 1:
			l.CPUs, l.Threads = 0, 0
		case 2:
			l.Ops = 0
		}
	}
}

func checkIdle(t *testing.T, seed uint64, step int, sys *System, loads []Load, got *Result) {
	t.Helper()
	held := make([]float64, len(sys.Domains))
	for i, l := range got.Loads {
		held[loads[i].Domain] += l.LLC
		for _, v := range append([]float64{l.Cycles, l.Stall, l.Ops, l.CPUs, l.LLC, l.Latency, l.L2Misses, l.Transfers}, l.DRAM...) {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("%s, seed %d, step %d: load %d: %+v", sys.Name, seed, step, i, l)
				break
			}
		}
		if idle := loads[i].CPUs == 0 || loads[i].Ops == 0; idle && (l.Ops != 0 || l.CPUs != 0 || l.LLC != 0) {
			t.Errorf("%s, seed %d, step %d: load %d does nothing, and has %+v", sys.Name, seed, step, i, l)
		}
	}
	for d, bytes := range held {
		if bytes > sys.Domains[d].LLC*(1+2e-5) {
			t.Errorf("%s, seed %d, step %d: LLC %d holds %v of %v bytes", sys.Name, seed, step, d, bytes, sys.Domains[d].LLC)
		}
	}
	if !(got.Residue <= 1e-5) {
		t.Errorf("%s, seed %d, step %d: residue %v after %d rounds", sys.Name, seed, step, got.Residue, got.Rounds)
	}
}

// A state with NaN is not where the next Solve starts.
func TestBeginsAnewAfterNaN(t *testing.T) {
	_, sys := DualSkylake()
	r := detmath.NewRandom(1, "anew")
	loads := randomLoads(&r, &sys, 6)
	want := new(Solver).Solve(&sys, loads).Loads[0].Cycles
	bad := append([]Load{}, loads...)
	bad[0].Slow = math.NaN()
	var s Solver
	s.Solve(&sys, bad)
	got := s.Solve(&sys, loads)
	if !(got.Residue <= 1e-5) || got.Loads[0].Cycles != want {
		t.Errorf("after NaN: %v cycles, residue %v; want %v", got.Loads[0].Cycles, got.Residue, want)
	}
}
