// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"testing"

	"homenode/internal/sim/detmath"
)

// busyHost is a server: 2 nodes, 20 groups, in steady state.
func busyHost() (*Host, []float64) {
	h := fakeHost(2, 48, 192)
	h.Settings.NUMABalancing = true
	wants := make([]float64, 20)
	for i := range wants {
		g := &Group{ID: sprint("/g", i), Threads: float64(4 + i%8), WakeRate: 500, Policy: Policy{Mode: Local}, Random: detmath.NewRandom(uint64(i))}
		h.Arrive(g)
		wants[i] = 1 + float64(i%5)
		h.Touch(g, Private, 3*gib)
		h.Touch(g, Shared, 3*gib)
		h.Touch(g, Cache, 6*gib)
	}
	for range 100 {
		h.Run(1, wants)
		h.Reclaim(1)
	}
	return h, wants
}

// A step of 20 groups on 2 nodes: at most 8 µs, nothing allocated.
func BenchmarkStep(b *testing.B) {
	h, wants := busyHost()
	b.ReportAllocs()
	for b.Loop() {
		h.Run(1, wants)
		for _, g := range h.Groups {
			h.Touch(g, Cache, 100)
			h.Touch(g, Shared, 10)
			h.Release(g, Shared, 10)
		}
		h.Reclaim(1)
	}
}

// Memory is full of page cache, every Touch drops some of all groups' cache, and NUMA
// balancing checks which nodes have idle CPUs. The time per group does not depend on the
// number of groups.
func BenchmarkFull(b *testing.B) {
	for _, n := range []int{50, 200, 800} {
		h := fakeHost(2, 48, 64)
		h.Settings.NUMABalancing = true
		wants := make([]float64, n)
		for i := range wants {
			g := &Group{ID: sprint("/g", i), Threads: 4, WakeRate: 500, Policy: Policy{Mode: Local}, Random: detmath.NewRandom(uint64(i))}
			h.Arrive(g)
			wants[i] = 0.2
			h.Touch(g, Shared, 40*gib/float64(n))
			h.Touch(g, Cache, 100*gib/float64(n))
		}
		b.Run(sprint(n), func(b *testing.B) {
			for b.Loop() {
				h.Run(1, wants)
				for _, g := range h.Groups {
					h.Touch(g, Cache, 100)
				}
				for _, g := range h.Groups {
					h.Balance(1, g)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/group")
		})
	}
}

// One group: at most 0.3 µs.
func BenchmarkBalance(b *testing.B) {
	h, wants := busyHost()
	h.Run(1, wants)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		h.Balance(1, h.Groups[i%20])
		i++
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	h, wants := busyHost()
	allocated := testing.AllocsPerRun(100, func() {
		h.Run(1, wants)
		for _, g := range h.Groups {
			h.Touch(g, Cache, 100)
			h.Balance(1, g)
			h.Release(g, Cache, 50)
		}
		h.Reclaim(1)
	})
	if allocated != 0 {
		t.Errorf("%g allocations a step", allocated)
	}
}
