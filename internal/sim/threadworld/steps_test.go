// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func threadOf(t *testing.T, w window.Window, id int) window.Thread {
	t.Helper()
	for _, wl := range w.Workloads {
		for _, x := range wl.Threads {
			if x.ID == id {
				return x
			}
		}
	}
	t.Fatalf("no thread %d", id)
	return window.Thread{}
}

// TestPinThread: a pin takes effect at once, is given back, is released, and some are
// refused.
func TestPinThread(t *testing.T) {
	tied := spinning("b", 1)
	tied.Start.CPUs, tied.Start.Pinned = cpuSet(t, "0-1"), true
	owned := spinning("c", 1)
	owned.Owner = "systemd"
	c := configOf(shapetest.Shape(t, "two"), spinning("a", 1), tied, owned)
	w := world(t, c)
	w.Run(time.Second)
	for _, x := range []struct {
		about    string
		workload string
		thread   int
		cpus     string
		release  bool
		want     action.Status
		allowed  string
		ours     bool
	}{
		{"pinned", "/a", 1, "2-3", false, action.Done, "2-3", true},
		{"elsewhere", "/a", 1, "1", false, action.Done, "1", true},
		{"given back", "/a", 1, "", false, action.Done, "0-3", false},
		{"released", "/a", 1, "3", true, action.Done, "0-3", false},
		{"another process's", "/b", 2, "1", false, action.Refused, "0", false},
		{"its owner's", "/c", 3, "1", false, action.Refused, "0-3", false},
		{"not its thread", "/a", 2, "1", false, action.Gone, "0", false},
		{"no thread", "/a", 9, "1", false, action.Gone, "", false},
		{"no such CPU", "/a", 1, "7", false, action.Refused, "0-3", false},
		{"gone", "/z", 1, "1", false, action.Gone, "0-3", false},
	} {
		w.Window()
		w.Apply([]action.Step{{Kind: action.PinThread, Workload: x.workload, Thread: x.thread, CPUs: cpuSet(t, x.cpus), Release: x.release}})
		out := w.Window()
		if len(out.Outcomes) != 1 || out.Outcomes[0].Status != x.want {
			t.Errorf("%s: %+v", x.about, out.Outcomes)
		}
		if x.thread > 3 {
			continue
		}
		got := threadOf(t, out, x.thread)
		if got.Allowed != cpuSet(t, x.allowed) || got.Ours != x.ours {
			t.Errorf("%s: allowed %v, ours %v", x.about, got.Allowed, got.Ours)
		}
		if cpu, _ := got.CPU.Get(); x.want == action.Done && x.cpus != "" && !cpuSet(t, x.cpus).Has(cpu) {
			t.Errorf("%s: it is on cpu %d", x.about, cpu)
		}
		if pinned := x.thread == 2; got.Pinned != pinned {
			t.Errorf("%s: pinned %v", x.about, got.Pinned)
		}
	}
}

// TestReleasedStays: nothing pulls a thread away from a CPU that it has to itself.
func TestReleasedStays(t *testing.T) {
	w := world(t, configOf(shapetest.Shape(t, "two"), spinning("a", 1)))
	w.Apply([]action.Step{{Kind: action.PinThread, Workload: "/a", Thread: 1, CPUs: cpuSet(t, "2-3"), Release: true}})
	w.Run(10 * time.Second)
	if cpu, _ := threadOf(t, w.Window(), 1).CPU.Get(); cpu < 2 {
		t.Errorf("it went to cpu %d", cpu)
	}
}

// TestMemoryStays: a moved thread leaves its pages where they are, and reads them remotely.
// Moving the pages restores its pace.
func TestMemoryStays(t *testing.T) {
	s := chasing("a", 1)
	s.Start.CPUs = cpuSet(t, "0-1")
	c := configOf(shapetest.Shape(t, "two"), s)
	w := world(t, c)
	pace := func() (ops, local float64) {
		w.Run(time.Second)
		x := w.Truth()[0]
		return x.Ops, x.Local / (x.Local + x.Remote)
	}
	near, all := pace()
	w.Apply([]action.Step{{Kind: action.SetCPUs, Workload: "/a", CPUs: cpuSet(t, "2-3")}})
	far, none := pace()
	if all != 1 || none != 0 || far > 0.7*near {
		t.Errorf("local %v, then %v; %v operations, then %v", all, none, near, far)
	}
	moved := unit.Bytes(0)
	for k := 0; ; k++ {
		w.Apply([]action.Step{{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(1), Budget: 3 * unit.MiB, Rate: 64 * unit.MiB}})
		w.Run(100 * time.Millisecond)
		o := w.Window().Outcomes
		last := o[len(o)-1]
		if moved += last.Moved; last.Status == action.Done {
			break
		}
		if last.Status != action.InProgress || last.Moved > 3*unit.MiB || k > 9 {
			t.Fatalf("%+v", o)
		}
	}
	if math.Abs(float64(moved-8*unit.MiB)) > float64(4*unit.KiB) { // a part of a page is lost in rounding
		t.Errorf("moved %v", moved)
	}
	w.Truth()
	if again, local := pace(); local != 1 || math.Abs(again/near-1) > 0.01 {
		t.Errorf("%v operations, %v local", again, local)
	}
}

// TestSetMems moves pages at once, and the workload stands still meanwhile.
func TestSetMems(t *testing.T) {
	s := chasing("a", 2)
	s.Start.CPUs, s.Start.Touch = cpuSet(t, "0-1"), set.FromNodes(1)
	w := world(t, configOf(shapetest.Shape(t, "two"), s))
	w.Run(time.Second)
	w.Apply([]action.Step{{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(0)}})
	out := w.Window()
	if b := out.Workloads[0].AnonByNode[0].Or(0); b != 16*unit.MiB || !out.Workloads[0].Binding.OursMems {
		t.Errorf("%v on node 0: %+v", b, out.Workloads[0].Binding)
	}
	w.Run(time.Second)
	if x := w.Truth()[0]; x.Stalled <= 0 || x.Stalled > 1 || x.Ops <= 0 {
		t.Errorf("it stood still for %v s", x.Stalled)
	}
}

// TestSlowest: one thread that shares its CPU slows down all, whether they sleep or spin,
// and only spinning threads look busy.
func TestSlowest(t *testing.T) {
	for _, spin := range []bool{false, true} {
		s := spinning("a", 4)
		s.Work.Barrier, s.Work.Spin = 1000000, spin
		s.Start.CPUs, s.Start.Pinned = cpuSet(t, "0-3"), true
		hog := spinning("b", 1)
		hog.Start.CPUs, hog.Start.Pinned = cpuSet(t, "0"), true
		w := world(t, configOf(shapetest.Shape(t, "two"), s, hog))
		w.Run(time.Second)
		w.Truth()
		w.Window()
		w.Run(time.Second)
		all := w.Truth()
		if pace := all[0].Ops / 4 / 50000; math.Abs(pace-0.5) > 0.01 { // 50 MHz, 1000 cycles
			t.Errorf("spin %v: the pace is %v of a CPU's", spin, pace)
		}
		want := 2.0
		if spin {
			want = 3.5
		}
		if cpu := all[0].CPUSeconds; math.Abs(cpu-want) > 0.05 {
			t.Errorf("spin %v: %v CPU seconds", spin, cpu)
		}
		if ipc := all[0].Instructions / all[0].Cycles; math.Abs(ipc-1) > 1e-9 {
			t.Errorf("spin %v: IPC %v", spin, ipc)
		}
	}
}

// TestFollowsMemory: under NUMA balancing, pages come to a thread that may not leave its
// node, at the pace of package sim. A thread that may leave goes to its pages.
func TestFollowsMemory(t *testing.T) {
	s := chasing("a", 2)
	s.Start.CPUs, s.Start.Pinned, s.Start.Touch = cpuSet(t, "0-1"), true, set.FromNodes(1)
	c := configOf(shapetest.Shape(t, "two"), s)
	c.Linux = linux.Settings{NUMABalancing: true}
	c.Step = 100 * time.Millisecond
	w := world(t, c)
	x, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	moved := false
	for range 100 {
		w.Run(100 * time.Millisecond)
		x.Run(100 * time.Millisecond)
		a, b := w.Window().Workloads[0].AnonByNode[0].Or(0), x.Window().Workloads[0].AnonByNode[0].Or(0)
		if math.Abs(float64(a-b)) > 0.25*float64(16*unit.MiB) {
			t.Errorf("at %v: %v are at home, sim has %v", w.Now(), a, b)
		}
		moved = a > 15*unit.MiB
	}
	if !moved {
		t.Error("they never came")
	}
	s.Start = sim.StartSpec{Touch: set.FromNodes(1)}
	s.Threads, s.Memory.Private = 1, 256*unit.MiB
	there := 0
	for seed := range uint64(20) {
		c := configOf(shapetest.Shape(t, "two"), s)
		c.Seed, c.Linux.NUMABalancing = seed, true
		w := world(t, c)
		w.Run(5 * time.Second)
		if w.ids[0].prefer == w.cpus[w.ids[0].cpu].node {
			there++
		}
	}
	if there < 19 {
		t.Errorf("%d of 20 threads are where most of their pages are", there)
	}
}

// TestSpread: threads start on the idlest nodes, random among equals.
func TestSpread(t *testing.T) {
	first := [2]int{}
	for seed := range uint64(100) {
		c := configOf(shapetest.Shape(t, "two"), spinning("a", 4))
		c.Seed = seed
		w := world(t, c)
		for i := range w.cpus {
			if len(w.cpus[i].threads) != 1 {
				t.Fatalf("seed %d: cpu %d has %d threads", seed, i, len(w.cpus[i].threads))
			}
		}
		first[w.cpus[w.ids[0].cpu].node]++
	}
	if first[0] < 30 || first[1] < 30 {
		t.Errorf("the first one starts on nodes %v times", first)
	}
}

// TestWakesWander: threads that wake up beside others find idle CPUs, and rarely one on
// another node.
func TestWakesWander(t *testing.T) {
	s := spinning("a", 6)
	s.Demand.Think = 40 * time.Microsecond
	c := configOf(shapetest.Shape(t, "two"), s)
	c.Linux = linux.Settings{WakePlacement: true}
	w := world(t, c)
	w.Run(100 * time.Second)
	moves := 0
	for _, x := range w.Threads() {
		moves += x.Moves
		if x.CPUSeconds < 20 {
			t.Errorf("thread %d has %v of 100 s", x.ID, x.CPUSeconds)
		}
	}
	if moves == 0 {
		t.Error("none ever came to another node")
	}
}
