// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
)

// Learning works with any period: two threads that began on the wrong node are at home for
// 0.97 of the time after the first 300 periods, whether they are tagged or found by trials,
// and each is moved at most 30 times in 3,000.
func TestConvergesAtAnyPeriod(t *testing.T) {
	const seeds, periods, first = 6, 3000, 300
	for _, length := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, time.Hour} {
		for _, tag := range []unit.Opt[bool]{unit.Some(true), unit.None[bool]()} {
			late, moves := 0.0, 0.0
			for seed := range uint64(seeds) {
				w := newToy(seed, 2, 4)
				w.length = length
				w.addLoad("/a", 2, 0, func(int) int { return 1 }, byDistance).sensitive = tag
				cfg := DefaultConfig()
				cfg.Period, cfg.Seed = length, seed+1
				late += w.run(t, cfg, periods, first, func() bool { return home(w) == 1 }) / seeds
				moves += float64(w.moves()) / 2 / seeds
			}
			t.Logf("periods of %v, numa_sensitive %v: both at home in %.3f of the time after %d, %.1f moves a thread", length, tag, late, first, moves)
			if late < 0.97 || moves > 30 {
				t.Errorf("periods of %v, numa_sensitive %v: both at home in %.3f of the time after %d, want 0.97; %.1f moves a thread, want 30 at most", length, tag, late, first, moves)
			}
		}
	}
}

// Periods of any length are handled: durations stay small enough to be added up.
func TestAtAbsurdPeriods(t *testing.T) {
	for _, length := range []time.Duration{-time.Hour, 0, 1 << 62} {
		c := DefaultConfig().atPeriod(length)
		if c.durations() != nil || c.Forget<<mostDoublings < c.Forget {
			t.Errorf("at %v: %v, Forget %v", length, c.durations(), c.Forget)
		}
	}
}

// max_moves counts threads that are moved. Giving a thread back what it had is not counted,
// and a swap counts as two.
func TestMaxMoves(t *testing.T) {
	for _, full := range []Full{FullGo, FullSwap, FullSwapOnly} {
		for most := 1; most <= 3; most++ {
			w := newToy(uint64(most), 2, 4)
			w.addLoad("/a", 8, 0, func(i int) int { return 1 - i/4 }, byDistance)
			cfg := DefaultConfig()
			cfg.MaxMoves, cfg.WhenFull = most, full
			st, seen := State{}, 0
			for range 600 {
				var actions []action.Action
				st, actions, _ = Step(w.machine, cfg, st, w.window())
				if seen = max(seen, len(actions)); len(actions) > most {
					t.Fatalf("%s: %d threads were moved in a period, want %d at most: %v", full, len(actions), most, actions)
				}
				w.apply(t, actions)
			}
			if swaps := full == FullSwapOnly && most == 1; home(w) < 1 && !swaps || seen == 0 && !swaps {
				t.Errorf("%s, %d at most: %.2f at home, %d moves in a period", full, most, home(w), seen)
			}
		}
	}
}

func TestMaxMovesIsOfMoves(t *testing.T) {
	w := newToy(1, 2, 4)
	w.addLoad("/held", 3, 0, func(int) int { return 0 }, byNothing).sensitive = unit.Some(false)
	w.addLoad("/mover", 1, 3, func(int) int { return 1 }, byDistance)
	cfg := DefaultConfig()
	cfg.MaxMoves, cfg.ExploreChance = 1, certain
	st := State{}
	for range 40 {
		win := w.window()
		for i := range win.Workloads[0].Threads {
			win.Workloads[0].Threads[i].Ours = true // to be given back in each period
		}
		var actions []action.Action
		st, actions, _ = Step(w.machine, cfg, st, win)
		moved := 0
		for _, a := range actions {
			if !a.CPUs.IsEmpty() {
				moved++
				w.apply(t, []action.Action{a})
			}
		}
		if moved > 1 || len(actions)-moved != 3 {
			t.Fatalf("%d moves and %d given back: %v", moved, len(actions)-moved, actions)
		}
	}
	if w.moves() == 0 {
		t.Error("giving back counted as a move: no thread was moved")
	}
}

// A workload whose threads are all pinned by another process gets a reason that says so,
// not that its place is right. A free thread among them is moved, and the reason only
// counts the others.
func TestPinnedIsSaid(t *testing.T) {
	for _, c := range []struct {
		tag    unit.Opt[bool]
		pinned int
		rule   string
	}{
		{unit.Some(true), 2, "brm.pinned"}, {unit.None[bool](), 2, "brm.pinned"},
		{unit.Some(false), 2, "brm.tagged"}, {unit.Some(true), 1, "brm.stay"},
	} {
		w := newToy(1, 2, 4)
		w.addLoad("/a", 2, 0, func(int) int { return 0 }, byDistance).sensitive = c.tag
		st := State{}
		for i := range 300 {
			win := w.window()
			for k := range c.pinned {
				win.Workloads[0].Threads[k].Pinned = true
			}
			var actions []action.Action
			var reasons []action.Reason
			st, actions, reasons = Step(w.machine, DefaultConfig(), st, win)
			w.apply(t, actions)
			if len(actions) > 0 && c.pinned == 2 {
				t.Fatalf("period %d: %v", i, actions)
			}
			n, found := 0.0, false
			for _, x := range reasons[0].Numbers {
				if v, ok := x.Value.Get(); ok && x.Name == "pinned" {
					n, found = v, true
				}
			}
			if len(actions) == 0 && reasons[0].Rule != c.rule || !found || n != float64(c.pinned) {
				t.Fatalf("numa_sensitive %v, %d of 2 pinned, period %d: %v, want %s", c.tag, c.pinned, i, reasons[0], c.rule)
			}
		}
	}
}
