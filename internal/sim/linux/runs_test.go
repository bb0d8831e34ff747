// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

func near(x, y float64) bool { return math.Abs(x-y) <= 1e-9*max(1, math.Abs(y)) }

// nearAll compares lists.
func nearAll(x []float64, y ...float64) bool {
	for i := range y {
		if !near(x[i], y[i]) {
			return false
		}
	}
	return len(x) == len(y)
}

// still has all behaviours switched off.
func still(nodes int, cpus, gibs float64) *Host {
	h := fakeHost(nodes, cpus, gibs)
	h.Settings = Settings{}
	return h
}

// 8 CPUs: a wants 1 and gets it; of the other 7, b's 4 threads and c's 10 get half
// each. A weight of 2.5 makes that 2 and 5.
func TestCPUIsFairByGroup(t *testing.T) {
	h := still(1, 8, 64)
	a, b, c := fakeGroup("a", 8), fakeGroup("b", 4), fakeGroup("c", 10)
	for _, g := range []*Group{a, b, c} {
		h.Arrive(g)
	}
	h.Run(1, []float64{1, 4, 10})
	if !near(a.Used[0], 1) || !near(b.Used[0], 3.5) || !near(c.Used[0], 3.5) {
		t.Errorf("used %g %g %g, not 1 3.5 3.5", a.Used[0], b.Used[0], c.Used[0])
	}
	c.Weight = 2.5
	h.Run(1, []float64{1, 4, 10})
	if !near(a.Used[0], 1) || !near(b.Used[0], 2) || !near(c.Used[0], 5) {
		t.Errorf("used %g %g %g, not 1 2 5", a.Used[0], b.Used[0], c.Used[0])
	}
}

// 32 threads against 2 on 2 CPUs: the two cgroups get a CPU each.
func TestThreadsAreNoWeight(t *testing.T) {
	h := still(1, 2, 64)
	many, two := fakeGroup("many", 32), fakeGroup("two", 2)
	h.Arrive(many)
	h.Arrive(two)
	if h.Run(1, []float64{32, 2}); !near(many.Used[0], 1) || !near(two.Used[0], 1) {
		t.Errorf("used %g and %g, not 1 and 1", many.Used[0], two.Used[0])
	}
}

func TestCPULimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Group)
		want   [2]float64
	}{
		{"threads: 4 of 10 wanted", func(*Group) {}, [2]float64{2, 2}},
		{"quota", func(g *Group) { g.Quota = 1 }, [2]float64{0.5, 0.5}},
		{"cpuset: the other node takes up what it can", func(g *Group) { g.CPUs = []float64{1, 8} }, [2]float64{1, 2}},
		{"no threads there", func(g *Group) { g.On = []float64{4, 0} }, [2]float64{4, 0}},
	} {
		h := still(2, 8, 64)
		g := fakeGroup("g", 2, 2)
		c.change(g)
		h.Arrive(g)
		h.Run(1, []float64{10})
		if !nearAll(g.Used, c.want[:]...) {
			t.Errorf("%s: %v, not %v", c.name, g.Used, c.want)
		}
	}
}

// g has 4 threads on each node and wants 6 CPUs; node 0 is full of others. Half of g's
// weight is there, and all of the other's: it gets a third of 8, and the rest on node 1.
func TestThreadsElsewhereTakeUpWhatAFullNodeRefuses(t *testing.T) {
	h := still(2, 8, 64)
	g, other := fakeGroup("g", 4, 4), fakeGroup("other", 12, 0)
	h.Arrive(g)
	h.Arrive(other)
	h.Run(1, []float64{6, 12})
	if !nearAll(g.Used, 8.0/3, 10.0/3) || !nearAll(other.Used, 16.0/3, 0) {
		t.Errorf("used %v and %v, not 8/3 10/3 and 16/3 0", g.Used, other.Used)
	}
}

// The brute-force twin of fill: small portions of CPU, each to the group with least for its
// weight.
func TestFairSharesAreThoseOfDrops(t *testing.T) {
	for seed := range uint64(1000) {
		r := detmath.NewRandom(seed)
		h := still(1, float64(1+r.Below(16)), 64)
		n := 1 + r.Below(6)
		wants, got := make([]float64, n), make([]float64, n)
		for i := range n {
			h.Arrive(fakeGroup(sprint(i), float64(1+r.Below(16))))
			h.Groups[i].Weight = 0.1 + 4*r.Float()
			wants[i] = 10 * r.Float()
		}
		h.Run(1, wants)
		drop := h.Nodes[0].CPUs / 4000
		for range 4000 {
			best := -1
			for i, g := range h.Groups {
				if got[i]+drop/2 <= g.asks(wants[i]) && (best < 0 || got[i]/g.Weight < got[best]/h.Groups[best].Weight) {
					best = i
				}
			}
			if best >= 0 {
				got[best] += drop
			}
		}
		for i, g := range h.Groups {
			if math.Abs(g.Used[0]-got[i]) > 3*drop {
				t.Fatalf("seed %d: %s got %g, by drops %g of %g", seed, g.ID, g.Used[0], got[i], h.Nodes[0].CPUs)
			}
		}
	}
}

func TestRunWithoutGroups(t *testing.T) {
	h := still(2, 8, 64)
	h.Run(1, nil)
	g := fakeGroup("g", 1, 1)
	h.Arrive(g)
	h.Run(1, []float64{0})
	h.Run(0, []float64{-1})
	if !nearAll(g.Used, 0, 0) {
		t.Errorf("used %v", g.Used)
	}
}
