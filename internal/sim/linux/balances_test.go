// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

// labHost is the lab's: 4 nodes of 2 CPUs, a thread pinned on node 0, 2,048 pages on node
// 1.
func labHost() (*Host, *Group) {
	h := fakeHost(4, 2, 1)
	h.Settings.NUMABalancing = true
	g := fakeGroup("chase", 1, 0, 0, 0)
	g.Pinned = true
	h.Arrive(g)
	g.Memory.Private[1] = 2048
	return h, g
}

// By hand: a second until the first scan, which marks all 8 MiB at once. No thread has
// faulted for the pages before, so they come home at their first fault, as fast as faults
// and moves allow: 2,048 × 3.7 µs. In the lab, where a move takes 0.75 ms, nothing moves
// for 1.2 s, and then all does in 1.6 s (sim/parity/testdata/lab.json).
func TestPrivatePagesComeHomeAsInTheLab(t *testing.T) {
	for _, c := range []struct{ move, want float64 }{{0, 1.1}, {0.75e-3 / 4096, 2.6}} {
		h, g := labHost()
		h.Settings.MoveSeconds = c.move
		seconds := 0.0
		for g.Memory.Private[0] < 2047.5 && seconds < 100 {
			h.Run(0.1, []float64{1})
			h.Balance(0.1, g)
			seconds += 0.1
			if seconds < 0.99 && g.Memory.Private[0] > 0 {
				t.Fatalf("%g pages at home after %g s", g.Memory.Private[0], seconds)
			}
		}
		if math.Abs(seconds-c.want) > 0.11 {
			t.Errorf("%+v: home after %g s", c, seconds)
		}
		if g.Scan.Moved < 2047.5 || g.Scan.Moved > 2048+1e-6 {
			t.Errorf("%+v: %g pages moved", c, g.Scan.Moved)
		}
		// 2,048 moves of 4,096 × 0.64 ns, and as many faults and marks of 1.05 µs.
		if want := 2048 * (4096*0.64e-9 + 1.05e-6); c.move == 0 && math.Abs(g.Scan.Sunk-want) > 0.001*want {
			t.Errorf("%+v: %g CPU seconds, not %g", c, g.Scan.Sunk, want)
		}
	}
}

func TestBalancingLeavesAlone(t *testing.T) {
	for name, change := range map[string]func(*Host, *Group){
		"switched off": func(h *Host, _ *Group) { h.Settings.NUMABalancing = false },
		"bound":        func(_ *Host, g *Group) { g.Policy = Policy{Mode: Bind, Nodes: []bool{false, true, false, false}} },
		"interleaved":  func(_ *Host, g *Group) { g.Policy = Policy{Mode: Interleave, Nodes: []bool{true, true, true, true}} },
		"full":         func(h *Host, _ *Group) { h.Nodes[0].Other = h.Nodes[0].Pages },
		"not allowed":  func(_ *Host, g *Group) { g.Mems = []bool{false, true, true, true} },
		"idle":         nil,
	} {
		h, g := labHost()
		wants := []float64{1}
		if change == nil {
			wants[0] = 0
		} else {
			change(h, g)
		}
		for range 100 {
			h.Run(1, wants)
			h.Balance(1, g)
		}
		if g.Memory.Private[0] != 0 || g.Memory.Private[1] != 2048 || g.Scan.Moved != 0 {
			t.Errorf("%s: %v", name, g.Memory.Private)
		}
	}
}

// localOf is the mean local share of a group of 8 threads with 4 GiB, all of it on node 0
// at first, with threads on both of two half-busy nodes.
func localOf(kind Kind, wakes, step float64, seed uint64) float64 {
	h := fakeHost(2, 32, 64)
	h.Settings.NUMABalancing = true
	g := fakeGroup("g", 4, 4)
	g.WakeRate, g.Random = wakes, detmath.NewRandom(seed)
	other := fakeGroup("other", 16, 16)
	other.Pinned = true
	h.Arrive(g)
	h.Arrive(other)
	g.list(kind, 0)[0] = 2 * gib
	if kind == Private {
		g.list(kind, 1)[0] = 2 * gib
	}
	out, mean, n := make([]float64, 2), 0.0, 0.0
	for i := range int(3600 / step) {
		h.Run(step, []float64{5, 12})
		h.Balance(step, g)
		if float64(i)*step < 600 {
			continue
		}
		for k := range out {
			g.Homes(out, k, 0.5)
			mean += g.Used[k] / detmath.Sum(g.Used) * out[k]
		}
		n++
	}
	return mean / n
}

func TestBalancingBringsPrivateMemoryHomeUnlessThreadsWander(t *testing.T) {
	for _, c := range []struct {
		name        string
		kind        Kind
		wakes       float64
		least, most float64
	}{
		{"private, threads stay", Private, 0, 0.85, 1},
		{"private, 100 wake-ups a second", Private, 100, 0.5, 0.75},
		{"private, 1,000 wake-ups a second", Private, 1000, 0.45, 0.6},
		{"shared, 10 wake-ups a second", Shared, 10, 0.45, 0.75},
		{"shared, 100 wake-ups a second", Shared, 100, 0.45, 0.75},
	} {
		mean := 0.0
		for seed := range uint64(20) {
			mean += localOf(c.kind, c.wakes, 1, seed) / 20
		}
		t.Logf("%s: %.1f %% local (MAO's fleet: 57.76 %%)", c.name, 100*mean)
		if mean < c.least || mean > c.most {
			t.Errorf("%s: %.3f local, not %g to %g", c.name, mean, c.least, c.most)
		}
	}
}

func TestStepSizeDoesNotMatterToBalancing(t *testing.T) {
	for _, kind := range []Kind{Private, Shared} {
		for _, wakes := range []float64{30, 300} {
			one, sixty := 0.0, 0.0
			for seed := range uint64(40) {
				one += localOf(kind, wakes, 1, seed) / 40
				sixty += localOf(kind, wakes, 60, seed) / 40
			}
			t.Logf("kind %d, %g wakes: %.4f in steps of 1 s, %.4f of 60 s", kind, wakes, one, sixty)
			if math.Abs(one-sixty) > 0.03 {
				t.Errorf("kind %d, %g wakes: %g local in steps of 1 s, %g of 60 s", kind, wakes, one, sixty)
			}
		}
	}
}

// scannedBefore makes the group one whose pages had faults from others before.
func (g *Group) scannedBefore() {
	g.pass.first, g.pass.wait = false, 0
	clear(g.Scan.Marked)
}

// No thread has faulted for the pages before: half of the faults are from node 1.
func TestSharedPagesGoToTheFirstWhoFaults(t *testing.T) {
	h := fakeHost(2, 8, 64)
	h.Settings = Settings{NUMABalancing: true}
	g := fakeGroup("g", 4, 4)
	h.Arrive(g)
	g.Memory.Shared[0] = 1000
	h.Run(1, []float64{8})
	h.begin(g)
	g.pass.wait = 0
	h.Balance(g.Scan.Period/2, g)
	if math.Abs(g.Memory.Shared[1]-500) > 1e-6 {
		t.Errorf("%g of 1,000 pages moved, not 500", g.Memory.Shared[1])
	}
}

// A shared page goes to node 1 with 0.5 × 0.5 from its last two faults, plus half of the
// 1/8 that one thread makes twice, among the pages that a whole pass sees, on top of what
// the others leave. All pages are on node 0 and both nodes are equally active: at most 3/7
// may go.
func TestSharedPagesNeedTwoFaultsFromTheSameNode(t *testing.T) {
	h := fakeHost(2, 8, 64)
	h.Settings = Settings{NUMABalancing: true}
	g := fakeGroup("g", 4, 4)
	h.Arrive(g)
	g.Memory.Shared[0] = 1000
	h.Run(1, []float64{8})
	h.begin(g)
	g.scannedBefore()
	h.Balance(g.Scan.Period, g) // marks the pages
	if g.Memory.Shared[1] != 0 {
		t.Fatalf("%g pages moved at their first fault", g.Memory.Shared[1])
	}
	h.Balance(g.Scan.Period, g)
	if want := 1000 * (0.5/8 + 0.25*7/8); math.Abs(g.Memory.Shared[1]-want) > 1e-6 {
		t.Errorf("%g of 1,000 pages moved, not %g", g.Memory.Shared[1], want)
	}
}

// update_task_scan_period, by hand, from 10 s.
func TestScanPeriodFollowsFaults(t *testing.T) {
	for _, c := range []struct {
		name                           string
		local, remote, private, shared float64
		failed                         bool
		want                           float64
	}{
		{"all private: 3 slots slower", 100, 0, 100, 0, false, 13},
		{"shared and local: 2 slots slower", 90, 10, 0, 100, false, 12},
		{"shared and half local: 2 slots faster", 50, 50, 0, 100, false, 8},
		{"shared and remote: 7 slots faster", 0, 100, 0, 100, false, 3},
		{"private and remote only: twice", 0, 100, 100, 0, false, 20},
		{"moves fail: twice", 50, 50, 0, 100, true, 20},
	} {
		h := fakeHost(2, 8, 64)
		g := fakeGroup("g", 4, 4)
		h.Arrive(g)
		g.Memory.Shared[0] = 1000
		g.Scan.Period = 10
		g.pass = pass{local: c.local, remote: c.remote, private: c.private, shared: c.shared, failed: c.failed, cpus: g.pass.cpus}
		g.adapt()
		if math.Abs(g.Scan.Period-c.want) > 1e-9 {
			t.Errorf("%s: %g s, not %g", c.name, g.Scan.Period, c.want)
		}
	}
}

// task_scan_min and task_scan_max: 1 GiB is 4 windows.
func TestScanPeriodLimits(t *testing.T) {
	h := fakeHost(2, 8, 64)
	g := fakeGroup("g", 4, 4)
	h.Arrive(g)
	g.Memory.Private[0] = gib
	if least, most := g.periods(); least != 0.25 || most != 15 {
		t.Errorf("1 GiB private: %g to %g s, not 0.25 to 15", least, most)
	}
	g.Memory.Private[0], g.Memory.Shared[0] = gib/2, gib/2
	if least, most := g.periods(); least != 0.25 || most != 60 {
		t.Errorf("half of it shared by 8 threads: %g to %g s, not 0.25 to 15 × 8 / 2", least, most)
	}
	g.Memory.Private[0] = 100 * gib
	if least, _ := g.periods(); least != 0.1 {
		t.Errorf("100 GiB: %g s, not 0.1", least)
	}
}

// The threads go to their memory if CPUs are idle there: half of them after a pass.
func TestThreadsFollowTheirMemory(t *testing.T) {
	h := fakeHost(2, 8, 64)
	h.Settings = Settings{NUMABalancing: true}
	g := fakeGroup("g", 0, 4)
	h.Arrive(g)
	g.Memory.Private[2] = 1000
	h.Run(1, []float64{4})
	h.begin(g)
	g.scannedBefore()
	h.Balance(g.Scan.Period, g)
	if g.On[0] != 2 || g.Memory.Private[0] != 500 || g.Memory.Private[2] != 500 {
		t.Errorf("threads %v, pages %v", g.On, g.Memory.Private)
	}
	busy := fakeGroup("busy", 8, 0)
	busy.Pinned = true
	h.Arrive(busy)
	h.Run(1, []float64{4, 8})
	on := g.On[0]
	h.placement(g)
	if g.wander.base[0] != on {
		t.Errorf("threads went to a busy node: %v", g.wander.base)
	}
}

// Faulting threads move pages in their own time.
func TestBalancingMovesAsFastAsItsThreadsCan(t *testing.T) {
	h, g := labHost()
	h.Settings.MoveSeconds = 1e-6 // 4 ms per page
	for range 10 {
		h.Run(1, []float64{1})
		before := g.Scan.Moved
		h.Balance(1, g)
		if moved := g.Scan.Moved - before; moved > 1/(PageBytes*1e-6)+1e-6 {
			t.Fatalf("%g pages moved in a second of one CPU, at %g s a page", moved, PageBytes*1e-6)
		}
	}
	if g.Scan.Moved == 0 {
		t.Error("nothing moved")
	}
}
