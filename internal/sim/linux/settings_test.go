// SPDX-License-Identifier: Apache-2.0

package linux

import "testing"

// obeying has 4 threads, half on each of two nodes of three, with 100 pages of each kind on
// each of these two.
func obeying() (*Host, *Group) {
	h := still(3, 8, 64)
	g := fakeGroup("g", 2, 2, 0)
	h.Arrive(g)
	g.Memory = Memory{Private: []float64{60, 40, 0, 40, 60, 0, 0, 0, 0}, Shared: []float64{100, 100, 0}, Mapped: []float64{100, 100, 0}, Cache: []float64{100, 100, 0}}
	h.scratch.counted = false
	return h, g
}

func TestSetCPUsMovesThreadsAndTheirRows(t *testing.T) {
	h, g := obeying()
	h.SetCPUs(g, []float64{0, 6, 2})
	if !nearAll(g.On, 0, 3.5, 0.5) || !nearAll(g.Memory.Private, 0, 0, 0, 85, 90, 0, 15, 10, 0) {
		t.Errorf("threads %v, rows %v", g.On, g.Memory.Private)
	}
	h.SetCPUs(g, []float64{8, 8, 8})
	if !nearAll(g.On, 0, 3.5, 0.5) {
		t.Errorf("wider: threads %v should stay", g.On)
	}
	h.SetCPUs(g, []float64{0, 0, 0})
	if !nearAll(g.CPUs, 8, 8, 8) {
		t.Errorf("none: %v", g.CPUs)
	}
}

// 300 pages on node 0 move, cache does not: 300 × 4,096 × 0.64 ns.
func TestSetMemsMovesInsideTheWrite(t *testing.T) {
	h, g := obeying()
	got := h.SetMems(g, []bool{false, true, false})
	if want := 300 * 4096 * 0.64e-9; !near(got.Pages, 300) || !near(got.CPU, want) || !near(got.Stalled, want) || got.Left != 0 {
		t.Errorf("%+v, not 300 pages in %g s", got, want)
	}
	if !nearAll(g.Memory.Cache, 100, 100, 0) || !nearAll(g.Memory.Shared, 0, 200, 0) || !nearAll(g.Memory.Private[:2], 0, 100) {
		t.Errorf("%+v", g.Memory)
	}
	h.Settings.MoveSeconds = 1e-9
	if got = h.SetMems(g, []bool{false, false, true}); !near(got.Stalled, 600*4096*1e-9) {
		t.Errorf("%+v, not 600 pages at 1 ns a byte", got)
	}
	if got = h.SetMems(g, []bool{false, false, false}); got != (Moved{}) || !g.Mems[2] {
		t.Errorf("none: %+v, %v", got, g.Mems)
	}
}

// A ratio of free room of 3:1 decides where pages go.
func TestMoveSpreadsByRoom(t *testing.T) {
	h, g := obeying()
	h.Nodes[1].Other = h.Nodes[1].Pages - h.scratch.min[1] - 300 - 400
	h.Nodes[2].Other = h.Nodes[2].Pages - h.scratch.min[2] - 300
	h.scratch.counted = false
	got := h.Move(g, []bool{true, false, false}, []bool{false, true, true}, 0, false)
	if !near(got.Pages, 300) || !near(g.Memory.on(1)-400, 150) || !near(g.Memory.on(2), 150) || got.Stalled != 0 {
		t.Errorf("%+v: %g and %g", got, g.Memory.on(1)-400, g.Memory.on(2))
	}
}

func TestMoveWithinBudgetAndRoom(t *testing.T) {
	for _, c := range []struct {
		name   string
		budget float64
		cache  bool
		room   float64
		want   Moved
	}{
		{"all", 0, false, 1000, Moved{Pages: 300}},
		{"cache, too", 0, true, 1000, Moved{Pages: 400}},
		{"budget", 100, false, 1000, Moved{Pages: 100, Left: 200}},
		{"room", 0, false, 50, Moved{Pages: 50, Left: 250, NoRoom: 250}},
		{"budget beyond room", 100, false, 50, Moved{Pages: 50, Left: 250, NoRoom: 50}},
		{"full", 100, false, 0, Moved{Left: 300, NoRoom: 100}},
	} {
		h, g := obeying()
		h.Nodes[2].Other = h.Nodes[2].Pages - h.scratch.min[2] - c.room
		h.scratch.counted = false
		got := h.Move(g, []bool{true, false, false}, []bool{false, false, true}, c.budget, c.cache)
		if !near(got.Pages, c.want.Pages) || !near(got.Left, c.want.Left) || !near(got.NoRoom, c.want.NoRoom) || !near(got.CPU, got.Pages*4096*0.64e-9) {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
		if !near(g.Memory.on(2), got.Pages) {
			t.Errorf("%s: %g arrived", c.name, g.Memory.on(2))
		}
	}
}

// do_pages_move: a node outside of cpuset.mems is refused.
func TestMoveStaysInTheCpuset(t *testing.T) {
	h, g := obeying()
	g.Mems = []bool{true, true, false}
	if got := h.Move(g, []bool{true, false, false}, []bool{false, false, true}, 0, false); got.Pages != 0 || !near(got.Left, 300) {
		t.Errorf("%+v", got)
	}
}

// With Reclaim, page cache of others makes way for pages that are moved in.
func TestMoveReclaimsCache(t *testing.T) {
	h, g := obeying()
	other := fakeGroup("other", 0, 0, 1)
	h.Arrive(other)
	other.Memory.Cache[2] = 200
	h.Nodes[2].Other = h.Nodes[2].Pages - h.scratch.min[2] - 250
	h.scratch.counted = false
	if got := h.Move(g, []bool{true, false, false}, []bool{false, false, true}, 0, false); !near(got.Pages, 50) {
		t.Errorf("switched off: %+v", got)
	}
	h.Settings.Reclaim = true
	if got := h.Move(g, []bool{true, false, false}, []bool{false, false, true}, 0, false); !near(got.Pages, 200) || !near(other.Memory.Cache[2], 0) {
		t.Errorf("%+v, %g pages of cache left", got, other.Memory.Cache[2])
	}
}

// 200 private pages of threads on node 0, 60 % at home; 400 others, half and half.
func TestHomes(t *testing.T) {
	h, g := obeying()
	out := make([]float64, 3)
	for _, c := range []struct {
		private float64
		want    [3]float64
	}{{1, [3]float64{0.6, 0.4, 0}}, {0, [3]float64{0.5, 0.5, 0}}, {0.5, [3]float64{0.55, 0.45, 0}}, {-1, [3]float64{0.5 + 0.1/3, 0.5 - 0.1/3, 0}}} {
		if g.Homes(out, 0, c.private); !nearAll(out, c.want[:]...) {
			t.Errorf("private %g: %v, not %v", c.private, out, c.want)
		}
	}
	if g.Homes(out, 2, 1); !nearAll(out, 0.5, 0.5, 0) {
		t.Errorf("no private pages: %v", out)
	}
	h.Depart(g)
	if g.Homes(out, 2, 0.5); !nearAll(out, 0, 0, 1) || len(h.Groups) != 0 || !near(h.Free(0), h.Nodes[0].Pages-h.Nodes[0].Other) {
		t.Errorf("no pages: %v; free %g", out, h.Free(0))
	}
	h.Depart(g)
}
