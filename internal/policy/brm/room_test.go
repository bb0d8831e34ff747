// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"testing"

	"homenode/internal/action"
	"homenode/internal/unit"
)

// sixForFour is six threads that all want the node with four CPUs. Two more CPUs are idle
// elsewhere.
func sixForFour(seed uint64) *toy {
	w := newToy(seed, 2, 4)
	w.addLoad("/a", 6, 0, func(int) int { return 0 }, byDistance)
	return w
}

// even does what a kernel does: of two threads on a CPU one goes to an idle CPU, in its
// node if there is one.
func (w *toy) even() {
	on := map[int]int{}
	for i := range w.loads {
		for _, t := range w.loads[i].threads {
			on[t.cpu]++
		}
	}
	for i := range w.loads {
		for k := range w.loads[i].threads {
			t := &w.loads[i].threads[k]
			first := w.nodeOf(t.cpu)
			for n := 0; n < len(w.nodes) && on[t.cpu] > 1; n++ {
				for _, cpu := range w.nodes[(first+n)%len(w.nodes)] {
					if on[t.cpu] > 1 && on[cpu] == 0 && w.r.IntN(2) == 0 {
						on[t.cpu]--
						t.cpu = cpu
						on[cpu]++
					}
				}
			}
		}
	}
}

// A whole CPU elsewhere is worth more than half a CPU at home. A thread that finds its node
// full of threads with as much to lose stays where CPUs are idle, and does not swap with an
// equal thread because of noise. Only exploring threads make a CPU busy twice, until the
// kernel has made room.
func TestStaysWhereCPUsAreIdle(t *testing.T) {
	for _, full := range []Full{FullSwap, FullGo} {
		most := 0
		for seed := range uint64(6) {
			w := sixForFour(seed)
			cfg := DefaultConfig()
			cfg.Seed, cfg.WhenFull = seed+1, full
			st, moves := State{}, 0
			for range 3000 {
				var actions []action.Action
				st, actions, _ = Step(w.machine, cfg, st, w.window())
				w.apply(t, actions)
				w.even()
				moves += len(actions)
			}
			if most = max(most, moves); home(w) < 0.6 {
				t.Errorf("%s, seed %d: %.2f are at home", full, seed, home(w))
			}
		}
		t.Logf("%s: %d moves in 30 s at most", full, most)
		if full == FullSwap && most > 200 || full == FullGo && most < 600 {
			t.Errorf("%s: %d moves in 30 s at most", full, most)
		}
	}
}

// Where insensitive threads fill a node, a thread that wants it goes there: the kernel
// makes room by moving one of those. It also goes where it leaves no idle CPU behind.
func TestGoesWhereTheKernelMakesRoom(t *testing.T) {
	for _, beside := range []int{4, 8} { // eight: two threads per CPU of the node
		w := newToy(1, 2, 4)
		w.addLoad("/a", 1, 0, func(int) int { return 1 }, byDistance)
		w.addLoad("/calm", beside, 4, func(int) int { return 0 }, byNothing).sensitive = unit.Some(false)
		for i := range w.loads[1].threads {
			w.loads[1].threads[i].cpu = 4 + i%4
		}
		if w.run(t, DefaultConfig(), 600, 599, func() bool { return w.nodeOf(w.loads[0].threads[0].cpu) == 1 }) == 0 {
			t.Errorf("beside %d threads that do not mind, it did not go home", beside)
		}
	}
}

// A move that would save less of a thread's time than half of MinGain is not made, however
// much its penalty differs: the thread hardly waits. A thread that only explored still goes
// back.
func TestSmallGainsAreLeft(t *testing.T) {
	moves := func(gain unit.Ratio) (n int) {
		w := newToy(3, 2, 4)
		w.noise = 0.005
		l := w.addLoad("/a", 2, 4, func(int) int { return 1 }, func(w *toy, _ *toyLoad, t *toyThread) float64 {
			return 92 - 8*float64(w.nodeOf(t.cpu)) // a tenth of 11 % of its time
		})
		l.rate = 0.0014
		cfg := DefaultConfig()
		cfg.MinGain = gain
		st := State{}
		for i := range 600 {
			if i == 400 {
				if home(w) != 1 {
					t.Fatalf("min_gain %g: the thread that explored did not go back", gain)
				}
				l.threads[0].cpu, l.threads[1].cpu = 0, 1 // moved by the kernel
			}
			var actions []action.Action
			st, actions, _ = Step(w.machine, cfg, st, w.window())
			w.apply(t, actions)
			if i >= 400 {
				n += len(actions)
			}
		}
		return n
	}
	if with, without := moves(0.03), moves(0); with > 0 || without != 2 {
		t.Errorf("%d moves for 1 %% of the time, want none; %d with min_gain 0, want 2", with, without)
	}
}

// Hold ties to a node only as many threads as it has CPUs: with a fifth on four CPUs all
// are released, and the kernel balances them.
func TestHoldsWhereThereIsRoom(t *testing.T) {
	w := newToy(1, 2, 4)
	w.addLoad("/a", 3, 0, func(int) int { return 1 }, byDistance)
	late := w.addLoad("/b", 2, 3, func(int) int { return 1 }, byNothing)
	late.sensitive = unit.Some(false)
	cfg := DefaultConfig()
	cfg.Hold = true
	st, held := State{}, map[int]bool{}
	for i := range 600 {
		if i == 300 {
			if len(held) != 3 {
				t.Fatalf("%d of 3 are held on a node of four CPUs", len(held))
			}
			w.loads[1].threads[0].cpu, w.loads[1].threads[1].cpu = 6, 7 // with other threads there are five
		}
		win := w.window()
		for k := range win.Workloads[0].Threads {
			th := &win.Workloads[0].Threads[k]
			th.Ours = held[th.ID]
		}
		var actions []action.Action
		st, actions, _ = Step(w.machine, cfg, st, win)
		for _, a := range actions {
			if !a.CPUs.IsEmpty() {
				w.apply(t, []action.Action{a})
			}
			if held[a.Thread] = !a.Release && !a.CPUs.IsEmpty(); !held[a.Thread] {
				delete(held, a.Thread)
			}
		}
	}
	if len(held) != 0 {
		t.Errorf("%d are held on a node of four CPUs with five threads", len(held))
	}
}
