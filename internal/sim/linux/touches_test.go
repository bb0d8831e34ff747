// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"testing"
)

// 1,000 pages, touched by 3 threads on node 0 and 1 on node 1.
func TestNewPagesByPolicy(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		mems   []bool
		want   [3]float64
	}{
		{"first touch", Policy{Mode: Local}, []bool{true, true, true}, [3]float64{750, 250, 0}},
		{"cpuset.mems 1 and 2: the nearest of it", Policy{Mode: Local}, []bool{false, true, true}, [3]float64{0, 1000, 0}},
		{"bound to 2", Policy{Bind, []bool{false, false, true}}, []bool{true, true, true}, [3]float64{0, 0, 1000}},
		{"bound to 1 and 2: the nearest of them", Policy{Bind, []bool{false, true, true}}, []bool{true, true, true}, [3]float64{0, 1000, 0}},
		{"bound to 0, which the cpuset has not", Policy{Bind, []bool{true, false, false}}, []bool{false, false, true}, [3]float64{0, 0, 1000}},
		{"interleaved", Policy{Interleave, []bool{true, false, true}}, []bool{true, true, true}, [3]float64{500, 0, 500}},
		{"interleaved, cpuset 2 only", Policy{Interleave, []bool{true, false, true}}, []bool{false, false, true}, [3]float64{0, 0, 1000}},
	} {
		for _, kind := range []Kind{Private, Shared, Mapped, Cache} {
			h := fakeHost(3, 4, 64)
			g := fakeGroup("g", 3, 1, 0)
			g.Policy, g.Mems = c.policy, c.mems
			h.Arrive(g)
			if refused := h.Touch(g, kind, 1000); refused != 0 {
				t.Errorf("%s: refused %g", c.name, refused)
			}
			for n, want := range c.want {
				if got := g.Memory.on(n); !near(got, want) {
					t.Errorf("%s, kind %d: node %d has %g pages, not %g", c.name, kind, n, got, want)
				}
			}
		}
	}
}

func TestPrivatePagesGoToTheRowOfTheirThreads(t *testing.T) {
	h := fakeHost(2, 4, 64)
	g := fakeGroup("g", 3, 1)
	g.Mems = []bool{false, true}
	h.Arrive(g)
	h.Touch(g, Private, 1000)
	if !nearAll(g.Memory.Private, 0, 750, 0, 250) {
		t.Errorf("rows %v, not 0 750, 0 250", g.Memory.Private)
	}
}

// A node of 1 GiB has 262,144 pages; Other has a quarter of them. Watermarks of two nodes:
// min_free_kbytes is √(16 × 2,097,152) = 5,793 KiB, half of it 724 pages.
func TestAFullNodeFallsOver(t *testing.T) {
	h := still(2, 4, 1)
	h.Settings.Fallback = true
	g := fakeGroup("g", 4, 0)
	h.Arrive(g)
	low := h.scratch.low[0]
	if math.Abs(h.scratch.min[0]-724.08) > 0.01 || math.Abs(low-(724.08+262.144)) > 0.01 {
		t.Fatalf("min %g, low %g", h.scratch.min[0], low)
	}
	free := 0.75 * gib
	if refused := h.Touch(g, Shared, free); refused != 0 {
		t.Fatalf("refused %g", refused)
	}
	if !near(g.Memory.Shared[0], free-low) || !near(g.Memory.Shared[1], low) {
		t.Errorf("%v: node 0 should be full to its low watermark, the rest on node 1", g.Memory.Shared)
	}
	refused := h.Touch(g, Shared, free) // now down to min, on both
	if want := 2 * h.scratch.min[0]; !near(refused, want) || !near(h.Free(0), want/2) || !near(h.Free(1), want/2) {
		t.Errorf("refused %g, free %g and %g; not %g, and half of it each", refused, h.Free(0), h.Free(1), want)
	}
}

func TestWithoutFallbackAFullNodeRefuses(t *testing.T) {
	h := still(2, 4, 1)
	g := fakeGroup("g", 4, 0)
	h.Arrive(g)
	if refused := h.Touch(g, Shared, gib); !near(refused, gib-0.75*gib+h.scratch.min[0]) || g.Memory.Shared[1] != 0 {
		t.Errorf("refused %g, pages %v", refused, g.Memory.Shared)
	}
}

// Direct reclaim: page cache of any group goes when nothing else is left.
func TestAnonymousPagesPushPageCacheOut(t *testing.T) {
	h := still(1, 4, 1)
	h.Settings.Reclaim = true
	g, files := fakeGroup("g", 4), fakeGroup("files", 1)
	h.Arrive(g)
	h.Arrive(files)
	h.Touch(files, Cache, 0.5*gib)
	if refused := h.Touch(g, Shared, 0.5*gib); refused != 0 {
		t.Errorf("refused %g", refused)
	}
	h.Reclaim(0) // brings other groups' lists up to date
	if want := 0.25*gib - h.scratch.min[0]; !near(files.Memory.Cache[0], want) {
		t.Errorf("%g pages of cache left, not %g", files.Memory.Cache[0], want)
	}
}

// kswapd wakes below low and gives back until high: from two groups in proportion to what
// they have, and from mapped files a tenth as much.
func TestKswapdGivesBackUntilHigh(t *testing.T) {
	h := still(1, 4, 1)
	h.Settings.Reclaim = true
	a, b := fakeGroup("a", 4), fakeGroup("b", 1)
	h.Arrive(a)
	h.Arrive(b)
	h.Touch(a, Cache, 100000)
	h.Touch(b, Cache, 50000)
	h.Touch(b, Mapped, 0.75*gib-150000-h.scratch.low[0]+10)
	h.Reclaim(1)
	if !near(h.Free(0), h.scratch.high[0]) {
		t.Errorf("free %g, not high %g", h.Free(0), h.scratch.high[0])
	}
	mapped := 0.75*gib - 150000 - h.scratch.low[0] + 10
	back := h.scratch.high[0] - h.scratch.low[0] + 10
	cache := back * 150000 / (150000 + 0.1*mapped)
	if !near(a.Memory.Cache[0], 100000-cache*2/3) || !near(b.Memory.Cache[0], 50000-cache/3) || !near(b.Memory.Mapped[0], mapped-(back-cache)) {
		t.Errorf("cache %g and %g, mapped %g", a.Memory.Cache[0], b.Memory.Cache[0], b.Memory.Mapped[0])
	}
	before := h.Free(0)
	if h.Reclaim(1); h.Free(0) != before {
		t.Error("kswapd did not go back to sleep")
	}
}

func TestKswapdTakesTime(t *testing.T) {
	h := still(1, 4, 1)
	h.Settings.Reclaim = true
	g := fakeGroup("g", 4)
	h.Arrive(g)
	h.Touch(g, Cache, gib)
	before := h.Free(0)
	h.Reclaim(1e-4)
	if want := 1e-4 * kswapdRate / PageBytes; !near(h.Free(0)-before, want) {
		t.Errorf("%g pages in 0.1 ms, not %g", h.Free(0)-before, want)
	}
	h.Settings.Reclaim = false
	before = h.Free(0)
	if h.Reclaim(1); h.Free(0) != before {
		t.Error("kswapd ran though it is switched off")
	}
}

func TestRelease(t *testing.T) {
	h := fakeHost(2, 4, 64)
	g := fakeGroup("g", 3, 1)
	h.Arrive(g)
	for _, kind := range []Kind{Private, Shared, Mapped, Cache} {
		h.Touch(g, kind, 1000)
		h.Release(g, kind, 400)
		if got := g.Memory.on(0); !near(got, 450) {
			t.Errorf("kind %d: %g left on node 0, not 450", kind, got)
		}
		h.Release(g, kind, 1e9)
		if got := g.Memory.on(0) + g.Memory.on(1); !near(got, 0) {
			t.Errorf("kind %d: %g left", kind, got)
		}
	}
}
