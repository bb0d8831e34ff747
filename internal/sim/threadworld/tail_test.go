// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// TestStopsAreLatency: a workload that stands still for a part of the time is no faster at
// P99 than at the mean, whenever P99 is read.
func TestStopsAreLatency(t *testing.T) {
	for seed := range uint64(40) {
		r := detmath.NewRandom(seed, "stops")
		s := chasing("a", 4)
		s.Memory.Private = unit.Bytes(1+r.Below(3)) * 128 * unit.MiB
		for i := range s.Work.Regions {
			s.Work.Regions[i].Size = s.Memory.Private / 4
		}
		if r.Below(3) == 0 {
			s.Demand.Think = 50 * time.Microsecond
		}
		c := configOf(shapetest.Shape(t, "two"), s)
		c.Seed = seed
		w := world(t, c)
		w.Run(time.Second)
		w.Truth()
		still := 0.0
		for k := range 20 {
			if k%6 == 0 {
				w.Apply([]action.Step{{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(k / 6 % 2)}})
			}
			w.Run(time.Duration(1+r.Below(700)) * time.Millisecond)
			x := w.Truth()[0]
			still += x.Stalled / x.Seconds / 20
			if x.Ops > 0 && x.P99 < 0.99*x.Latency {
				t.Errorf("seed %d: P99 %v, mean %v, %v of %v s still", seed, x.P99, x.Latency, x.Stalled, x.Seconds)
			}
		}
		if still < 0.05 {
			t.Errorf("seed %d: it stood still for %v of the time only", seed, still)
		}
	}
}

// TestStarvedAreLatency: a thread that gets no CPU counts, too.
func TestStarvedAreLatency(t *testing.T) {
	var l tail
	wl := &workload{Workload: &sim.Workload{}}
	wl.Demand.Duty, wl.Spec = 1, &spinSpec
	threads := []thread{{wl: wl}, {wl: wl}}
	for range 100 {
		l.step(&threads[0], 0.01, 10)
		l.step(&threads[1], 0.01, 0)
	}
	if p := l.p99(); p > 0.0011 {
		t.Fatalf("P99 %v before the threads that wait are counted", p)
	}
	if l.unfinished(threads); l.p99() < 0.99 {
		t.Errorf("P99 %v, a thread waits for a second", l.p99())
	}
}

var spinSpec = spinning("a", 1)
