// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"slices"
	"testing"

	"homenode/internal/sim/detmath"
)

func TestSwitchedOffThreadsStay(t *testing.T) {
	h := still(2, 8, 64)
	g := fakeGroup("g", 16, 0)
	g.WakeRate = 1000
	h.Arrive(g)
	for range 100 {
		h.Run(1, []float64{16})
	}
	if !nearAll(g.On, 16, 0) {
		t.Errorf("threads %v", g.On)
	}
}

// 12 threads want a CPU each, all on node 0 of two with 8 CPUs. The mean is 6 each;
// load_balance stops at 1.17 × 6 on node 0. After one time constant, 1/e of the excess of
// 4.98 is left.
func TestLoadBalanceRelievesABusyNode(t *testing.T) {
	h := fakeHost(2, 8, 64)
	h.Settings = Settings{LoadBalance: true}
	g := fakeGroup("g", 12, 0)
	h.Arrive(g)
	h.Touch(g, Private, 1200)
	h.Run(balanceSeconds, []float64{12})
	busy := 12.0 / 16
	mixed := math.Exp(-swapRate * busy * busy)
	want := 6 + (6*imbalance+4.98*math.Exp(-1))*mixed
	if math.Abs(g.wander.base[0]-want) > 1e-9 {
		t.Errorf("%g threads on node 0, not %g", g.wander.base[0], want)
	}
	if all := g.Memory.Private[2]; math.Abs(all-100*g.wander.base[1]) > 1e-6 || g.Memory.Private[1] != 0 || g.Memory.Private[3] != 0 {
		t.Errorf("private pages %v: their rows did not go with the threads, or they moved", g.Memory.Private)
	}
}

// adjust_numa_imbalance: 2 busy threads of 16 CPUs may be on one node.
func TestLoadBalanceLeavesAFewThreadsTogether(t *testing.T) {
	h := fakeHost(2, 16, 64)
	h.Settings = Settings{LoadBalance: true}
	g := fakeGroup("g", 2, 0)
	h.Arrive(g)
	if h.Run(1, []float64{2}); math.Abs(g.wander.base[0]-2) > 0.01 {
		t.Errorf("threads %v", g.wander.base)
	}
}

// One group is bound to node 0 and wants 3 CPUs, the other wants 5. The mean is 4 on each
// node, and 4 × 1.17 is allowed on node 0: 1.68 of the 5.
func TestBalanceKnowsWhichThreadsCannotMove(t *testing.T) {
	h := fakeHost(2, 8, 64)
	bound, g := fakeGroup("bound", 6, 0), fakeGroup("g", 5, 5)
	bound.CPUs = []float64{8, 0}
	h.Arrive(bound)
	h.Arrive(g)
	h.Run(1, []float64{3, 5})
	if aim := h.scratch.aim; !nearAll(aim[:2], 1, 0) || math.Abs(aim[2]-1.68/5) > 0.005 {
		t.Errorf("aim %v, not 1 0 0.336 0.664", aim)
	}
}

// A cpuset has 2 CPUs on node 0 and 8 on node 1, and 5 threads each want one. The mean is 2
// and 8 of 10, and a sixth more is allowed on node 0.
func TestLoadBalanceWithinACpuset(t *testing.T) {
	h := fakeHost(2, 8, 64)
	h.Settings = Settings{LoadBalance: true}
	g := fakeGroup("g", 5, 5)
	g.CPUs = []float64{2, 8}
	h.Arrive(g)
	for range 20 {
		h.Run(1, []float64{10})
	}
	if on := g.wander.base[0]; on < 1.9 || on > 2*(1+imbalance)+1e-6 {
		t.Errorf("%g threads on node 0, not 2 to %g", on, 2*(1+imbalance))
	}
}

func TestPinnedThreadsStay(t *testing.T) {
	h := fakeHost(2, 8, 64)
	g := fakeGroup("g", 16, 0)
	g.Pinned, g.WakeRate = true, 1000
	h.Arrive(g)
	for range 100 {
		h.Run(1, []float64{16})
	}
	if !nearAll(g.On, 16, 0) {
		t.Errorf("threads %v", g.On)
	}
}

// The deviation of threads that wake up where CPUs are idle: n threads, half on each node,
// busy half of the time: √(n/4 × 1/2).
func TestWanderingFallsWithThreads(t *testing.T) {
	for _, threads := range []float64{16, 64} {
		mean, square, n := 0.0, 0.0, 4000.0
		for seed := range uint64(n) {
			h := fakeHost(2, threads/2, 64)
			h.Settings = Settings{WakePlacement: true}
			g := fakeGroup("g", threads/2, threads/2)
			g.WakeRate, g.Random = 1e6, detmath.NewRandom(seed)
			h.Arrive(g)
			h.Run(60, []float64{threads / 2})
			mean += g.On[0] / n
			square += g.On[0] * g.On[0] / n
		}
		want := math.Sqrt(threads / 8)
		if got := math.Sqrt(square - mean*mean); math.Abs(got/want-1) > 0.05 || math.Abs(mean-threads/2) > 0.1 {
			t.Errorf("%g threads: %g ± %g, not ± %g", threads, mean, got, want)
		}
	}
}

// Threads of a group are placed anew at a rate of 0.5 per second: after 2 s, 1/e of them
// never were. All pages of the threads on node 0 were there.
func TestPlacingAnewMixesRows(t *testing.T) {
	h := fakeHost(2, 16, 64)
	h.Settings = Settings{WakePlacement: true}
	g := fakeGroup("g", 8, 8)
	g.WakeRate = 0.5 / (wakeCross * 0.25) // busy × idle is 1/4
	h.Arrive(g)
	g.Memory.Private = []float64{1000, 0, 0, 1000}
	h.Run(2, []float64{16})
	left := math.Exp(-1)
	if want := 500 + 500*left; math.Abs(g.Memory.Private[0]-want) > 1e-6 || math.Abs(g.Memory.Private[2]-(1000-want)) > 1e-6 {
		t.Errorf("%v, not %g at home", g.Memory.Private, want)
	}
}

func TestGoneIsTheExponential(t *testing.T) {
	for x := 1e-20; x < 50; x *= 1.037 {
		if got, want := gone(x), -math.Expm1(-x); math.Abs(got-want) > 1e-14*want {
			t.Fatalf("gone(%g) = %g, not %g", x, got, want)
		}
	}
}

// exec goes to any node; an eighth of the node's CPUs may be busy there, and the rest goes
// where CPUs are idle: of 16 CPUs, 2 threads; of the other 8 threads, 14/30 and 16/30.
func TestArrivalsSpreadBeyondAnEighth(t *testing.T) {
	h := fakeHost(2, 16, 64)
	g := &Group{ID: "/g", Threads: 10, Random: detmath.NewRandom(1)}
	h.Arrive(g)
	first := 2 + 8*14.0/30
	if !nearAll(g.On, first, 10-first) && !nearAll(g.On, 10-first, first) {
		t.Errorf("threads %v, not %g on the first", g.On, first)
	}
	at := 0
	for seed := range uint64(1000) {
		h := fakeHost(2, 16, 64)
		g := &Group{ID: "/g", Threads: 2, Random: detmath.NewRandom(seed)}
		h.Arrive(g)
		if g.On[0] != 2 && g.On[1] != 2 {
			t.Fatalf("2 threads are not together: %v", g.On)
		}
		at += int(g.On[0]) / 2
	}
	if at < 440 || at > 560 {
		t.Errorf("%d of 1,000 went to node 0", at)
	}
}

// 12 of 16 CPUs of node 0 are busy: exec goes there once in five times.
func TestArrivalsLookForIdleCPUs(t *testing.T) {
	at := 0.0
	for seed := range uint64(1000) {
		h := fakeHost(2, 16, 64)
		busy := fakeGroup("busy", 12, 0)
		busy.Pinned = true
		h.Arrive(busy)
		h.Run(1, []float64{12})
		g := &Group{ID: "/g", Threads: 1, Random: detmath.NewRandom(seed)}
		h.Arrive(g)
		at += g.On[0] / 1000
	}
	if at < 0.16 || at > 0.24 {
		t.Errorf("%g of threads went to node 0, not 0.2", at)
	}
}

// Run(0) gives out CPU anew because others' wants changed. It moves no threads and no
// pages, and changes nothing in the work of NUMA balancing.
func TestNoTimeMovesNothing(t *testing.T) {
	var ways [2]*Host
	for i := range ways {
		h, wants := busyHost()
		for range 30 {
			h.Run(60, wants)
			for range 3 * i {
				h.Run(0, wants)
			}
			for _, g := range h.Groups {
				h.Balance(60, g)
			}
		}
		ways[i] = h
	}
	for i, g := range ways[0].Groups {
		o := ways[1].Groups[i]
		if !slices.Equal(g.On, o.On) || !slices.Equal(g.Memory.Private, o.Memory.Private) || g.Random != o.Random {
			t.Fatalf("%s: threads %v, with more rounds %v; pages %v, %v", g.ID, g.On, o.On, g.Memory.Private, o.Memory.Private)
		}
	}
}
