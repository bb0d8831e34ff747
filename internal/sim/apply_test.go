// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// remote is a service on node 0's CPUs with its memory on node 1.
func remote(name string) Spec {
	s := serving(name, 2, 300)
	s.Start.Touch = set.FromNodes(1)
	return s
}

func outcome(t *testing.T, w window.Window) action.Outcome {
	t.Helper()
	if len(w.Outcomes) != 1 {
		t.Fatalf("outcomes: %+v", w.Outcomes)
	}
	return w.Outcomes[0]
}

func TestRefusals(t *testing.T) {
	a := serving("a", 2, 100)
	b := serving("b", 1, 100)
	b.Start.CPUs = set.FromCPUs(0, 1)
	d := serving("d", 1, 100)
	d.Owner = "systemd"
	const owned = "act on /d: refused: owned by systemd, which would overwrite or be confused by a direct write: name it in direct_owners to allow that"
	w := world(t, testConfig(t, a, b, d))
	for _, c := range []struct {
		step   action.Step
		status action.Status
		want   string
	}{
		{action.Step{Kind: action.SetCPUs, Workload: "/x", CPUs: set.FromCPUs(0)}, action.Gone, "act on /x: no such file or directory"},
		{action.Step{Kind: action.SetCPUs, Workload: "/a", CPUs: set.FromCPUs(3, 4)}, action.Refused, "set /a cpuset.cpus to 3-4: refused: its parent has 0-3 only, not 4"},
		{action.Step{Kind: action.SetCPUs, Workload: "/a"}, action.Refused, "an empty set binds nothing"},
		{action.Step{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(2)}, action.Refused, "set /a cpuset.mems to 2: refused: its parent has 0-1 only, not 2"},
		{action.Step{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(5)}, action.Refused, "refused by the simulator: its cpuset.mems has nodes 0-1 only"},
		{action.Step{Kind: action.SetCPUs, Workload: "/d", CPUs: set.FromCPUs(0)}, action.Refused, owned},
		{action.Step{Kind: action.MovePages, Workload: "/d", Nodes: set.FromNodes(0)}, action.Refused, owned},
		{action.Step{Kind: action.Freeze, Workload: "/d"}, action.Refused, owned},
		{action.Step{Kind: action.Freeze, Workload: "/a"}, action.Refused, "take step freeze for /a: refused: it sets nothing"},
		{action.Step{Kind: action.Restore, Workload: "/d"}, action.Done, ""},
		{action.Step{Kind: "dance", Workload: "/a"}, action.Refused, "it sets nothing"},
		{action.Step{Kind: action.SetCPUs, Workload: "/a", CPUs: set.FromCPUs(0, 1)}, action.Done, "/a cpuset.cpus = 0-1"},
		{action.Step{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(0)}, action.Done, "/a cpuset.mems = 0"},
		{action.Step{Kind: action.Restore, Workload: "/a"}, action.Done, ""},
	} {
		w.Apply([]action.Step{c.step})
		if o := outcome(t, w.Window()); o.Status != c.status || !strings.Contains(o.Detail, c.want) {
			t.Errorf("%v: %s %q, want %s %q", c.step, o.Status, o.Detail, c.status, c.want)
		}
	}
}

func TestBusyKernel(t *testing.T) {
	c := testConfig(t, serving("a", 1, 10))
	c.Linux.Busy = 1
	w := world(t, c)
	w.Apply([]action.Step{
		{Kind: action.SetCPUs, Workload: "/a", CPUs: set.FromCPUs(0)},
		{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(0)}, // dropped: the step before was not done
	})
	w.Run(time.Second)
	if o := outcome(t, w.Window()); o.Status != action.Refused || !strings.Contains(o.Detail, "EBUSY") {
		t.Errorf("%s %q", o.Status, o.Detail)
	}
}

// At 16 MiB per second, 32 MiB have moved after two seconds, and the rest is in progress. A
// budget ends the move, too. Without a rate it is as fast as one CPU copies.
func TestMoving(t *testing.T) {
	s := remote("a")
	s.Start.CPUs = set.FromCPUs(0, 1)
	w := world(t, testConfig(t, s))
	move := action.Step{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(0), From: set.FromNodes(1), Rate: 16 * unit.MiB, PageCache: true}
	w.Apply([]action.Step{move})
	w.Run(2 * time.Second)
	o := outcome(t, w.Window())
	if o.Status != action.InProgress || o.Moved != 32*unit.MiB {
		t.Errorf("after 2 s: %s, %v", o.Status, o.Moved)
	}
	// A thousand cycles, and 64 lines read from node 1 and written to node 0, 4 at once, as
	// the lab's cores have them.
	near(t, "the mover's CPU time", o.CPUSeconds, 32*256*(1000+64*(373+216)/4.0)/w.Config.System.Hz, 0.03)
	w.Run(time.Second)
	if win := w.Window(); len(win.Outcomes) != 0 {
		t.Errorf("it went on: %+v", win.Outcomes)
	}
	move.Budget = 4 * unit.MiB
	w.Apply([]action.Step{move})
	w.Run(2 * time.Second)
	if o := outcome(t, w.Window()); o.Status != action.InProgress || o.Moved != 4*unit.MiB {
		t.Errorf("with a budget: %s, %v", o.Status, o.Moved)
	}
	move.Budget, move.Rate = 0, 0
	w.Apply([]action.Step{move})
	w.Run(8 * time.Second)
	o = outcome(t, w.Window())
	if o.Status != action.Done || o.Moved != 108*unit.MiB {
		t.Errorf("all the rest: %s, %v", o.Status, o.Moved)
	}
	w.Apply([]action.Step{move})
	w.Run(time.Second)
	if o = outcome(t, w.Window()); o.Status != action.Done || o.Moved != 0 {
		t.Errorf("nothing left: %s, %v", o.Status, o.Moved)
	}
}

// A full node takes what it has room for. The rest fails, and the mover is done
// (kernel/migrate: pages without room give their budget back, and all are tried).
func TestMovingToAFullNode(t *testing.T) {
	for _, c := range []struct {
		name string
		have unit.Bytes // memory of the workload that fills node 0
		some bool       // something moves
	}{{"no room", 751 * unit.MiB, false}, {"some room", 720 * unit.MiB, true}} {
		t.Run(c.name, func(t *testing.T) {
			s, full := remote("a"), serving("full", 1, 10)
			s.Start.CPUs = set.FromCPUs(0, 1)
			s.Memory.Files, s.Memory.Cache = 0, 0
			full.Memory, full.Work.Regions = MemorySpec{Private: c.have}, nil
			full.Start.Bind = set.FromNodes(0)
			cfg := testConfig(t, full, s)
			w := world(t, cfg)
			room := unit.Bytes(w.Host.Free(0)) * linux.PageBytes
			w.Apply(steps(action.Step{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(0), Budget: 128 * unit.MiB, PageCache: true}))
			w.Run(10 * time.Second)
			o := outcome(t, w.Window())
			const all = 128 * unit.MiB
			if o.Status != action.Done || o.Moved > room || (o.Moved > 0) != c.some || max(o.Moved+o.Failed-all, all-o.Moved-o.Failed) > 2*linux.PageBytes {
				t.Errorf("%s: moved %v, failed %v of %v, room %v: %s", o.Status, o.Moved, o.Failed, all, room, o.Detail)
			}
		})
	}
}

// streaming reads its own node's memory or, on DualSkylake, the other's, from end to end.
func streaming(name string, cpus set.CPUSet, touch int) Spec {
	s := chasing(name, cpus.Len())
	s.Memory.Private = unit.Bytes(cpus.Len()) * 64 * unit.MiB
	s.Work.Regions = []RegionSpec{{Size: 64 * unit.MiB, Accesses: 1, Parallelism: 10, Stream: true}}
	s.Start = StartSpec{CPUs: cpus, Bind: set.FromNodes(touch)}
	return s
}

// On an idle machine moving costs MAO's 0.64 s/GB. A workload that saturates the link that
// pages cross slows the move, by what the memory system serves. The traffic is that of the
// moved pages.
func TestMovesAreServed(t *testing.T) {
	m, y := memsys.DualSkylake()
	move := func(busy bool) (pages, served float64) {
		s := serving("a", 2, 10)
		s.Memory = MemorySpec{Private: 4 * unit.GiB}
		s.Work.Regions = nil
		s.Start.Touch = set.FromNodes(1)
		specs := []Spec{s}
		if busy {
			specs = append(specs, streaming("b", m.CPUsOf(set.FromNodes(0)), 1))
		}
		w := world(t, Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: specs, Seed: 1, Start: start})
		w.Run(5 * time.Second)
		w.Apply(steps(action.Step{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(0)}))
		w.Run(time.Second)
		lines := 0.0
		for i, r := range w.Solver.Solve(&y, w.Loads).Loads {
			if w.Loads[i].Workload >= len(w.live) {
				lines += r.Ops * detmath.Sum(r.DRAM)
			}
		}
		o := outcome(t, w.Window())
		if o.Status != action.InProgress || o.CPUSeconds > 1+1e-9 {
			t.Errorf("%s: %v of CPU time", o.Detail, o.CPUSeconds)
		}
		return float64(o.Moved / linux.PageBytes), lines / 128
	}
	alone, served := move(false)
	near(t, "pages a second", alone, 1/(0.64e-9*4096), 0.05)
	near(t, "traffic alone", served, alone, 1e-3)
	beside, served := move(true)
	t.Logf("pages a second: %.0f, beside streams %.0f", alone, beside)
	if beside > alone*0.7 {
		t.Errorf("beside streams %v pages a second, alone %v", beside, alone)
	}
	near(t, "traffic beside streams", served, beside, 1e-3)
}

// A mover is one thread, whatever its targets are. It makes traffic on the way to a node
// without CPUs, too.
func TestOneMover(t *testing.T) {
	for _, c := range []struct {
		shape    string
		from, to set.NodeSet
	}{{"four", set.FromNodes(0), set.FromNodes(1, 2, 3)}, {"far", set.FromNodes(0), set.FromNodes(2)}} {
		s := serving("a", 1, 10)
		s.Start.Touch = c.from
		w := world(t, configOf(shapetest.Shape(t, c.shape), s))
		w.Apply(steps(action.Step{Kind: action.MovePages, Workload: "/a", Nodes: c.to}))
		w.Run(time.Second)
		cpus, ops := 0.0, 0.0
		for _, l := range w.Loads {
			if l.Workload >= len(w.live) {
				cpus += l.CPUs
				ops += l.Ops
			}
		}
		o := outcome(t, w.Window())
		near(t, c.shape+": CPUs", cpus, 1, 1e-9)
		if o.Moved == 0 || ops < float64(o.Moved/linux.PageBytes) {
			t.Errorf("%s: %v moved, asked for %v", c.shape, o.Moved, ops)
		}
	}
}

// The longer calls may be, the longer threads stand still: about one call in total.
func TestMaxStall(t *testing.T) {
	run := func(most time.Duration) Truth {
		s := remote("a")
		s.Start.CPUs = set.FromCPUs(0, 1)
		w := world(t, testConfig(t, s))
		w.Apply(steps(action.Step{Kind: action.MovePages, Workload: "/a", Nodes: set.FromNodes(0), PageCache: true, MaxStall: most}))
		w.Run(10 * time.Second)
		return w.Truth()[0]
	}
	short, long := run(time.Millisecond), run(400*time.Millisecond)
	near(t, "stopped by calls of 1 ms", short.Stalled, 0.001, 0.1)
	near(t, "stopped by calls of 400 ms", long.Stalled, 0.4, 0.1)
	// Its pages take some sixteen such calls, and each stops it for its part: 4 % of the
	// requests come in a stop of 25 ms.
	if long.P99 < short.P99+0.02 || long.P99 > 0.1 || long.Latency <= short.Latency {
		t.Errorf("P99 %v and %v, latency %v and %v", short.P99, long.P99, short.Latency, long.Latency)
	}
}

// Writing mems moves 4 MiB inside the write. The workload stands still for the time of the
// copy, and requests are late by that.
func TestSetMemsStall(t *testing.T) {
	late := func(set1 bool) Truth {
		s := remote("a")
		s.Memory, s.Work.Regions = MemorySpec{Private: 4 * unit.MiB}, nil
		s.Start.CPUs = set.FromCPUs(0, 1)
		w := world(t, testConfig(t, s))
		w.Run(5 * time.Second)
		w.Truth()
		if set1 {
			w.Apply([]action.Step{{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(0)}})
		}
		w.Run(time.Second)
		return w.Truth()[0]
	}
	got, without := late(true), late(false)
	near(t, "stalled", got.Stalled, 1024*(1000+64*(373+216)/4.0)/5e7, 0.01)
	if added := got.Latency - without.Latency; added < got.Stalled*got.Stalled/2*0.5 {
		t.Errorf("latency %v, without %v: stalled %v", got.Latency, without.Latency, got.Stalled)
	}
	if got.P99 < without.P99+got.Stalled/2 {
		t.Errorf("P99 %v, without %v", got.P99, without.P99)
	}
}

// A cpuset that another process set stays that process's until another value is written.
// Writing a value that is already there is no change (journal.change); the parent's value
// counts, too. Restore puts the other process's value back.
func TestWhoseCpuset(t *testing.T) {
	a, b := serving("a", 2, 100), serving("b", 1, 100)
	b.Start.CPUs = set.FromCPUs(0, 1)
	w := world(t, testConfig(t, a, b))
	for _, c := range []struct {
		step         action.Step
		cpus         set.CPUSet
		ours, pinned bool
	}{
		{action.Step{Kind: action.SetCPUs, Workload: "/b", CPUs: set.FromCPUs(0, 1)}, set.FromCPUs(0, 1), false, true},
		{action.Step{Kind: action.SetCPUs, Workload: "/b", CPUs: set.FromCPUs(2, 3)}, set.FromCPUs(2, 3), true, false},
		{action.Step{Kind: action.SetCPUs, Workload: "/b", CPUs: set.FromCPUs(2, 3)}, set.FromCPUs(2, 3), true, false},
		{action.Step{Kind: action.Restore, Workload: "/b"}, set.FromCPUs(0, 1), false, true},
		{action.Step{Kind: action.SetCPUs, Workload: "/a", CPUs: set.FromCPUs(0, 1, 2, 3)}, set.FromCPUs(0, 1, 2, 3), true, false},
	} {
		w.Apply(steps(c.step))
		win := w.Window()
		if o := outcome(t, win); o.Status != action.Done {
			t.Errorf("%v: %s %q", c.step, o.Status, o.Detail)
		}
		wl, _ := win.Workload(c.step.Workload)
		if b := wl.Binding; b.CPUs != c.cpus || b.OursCPUs != c.ours || b.PinnedCPUs != c.pinned {
			t.Errorf("after %v: %+v", c.step, b)
		}
	}
}

// The whole way: MAO sees remote accesses and binds; actuate sets CPUs, moves pages, sets
// mems; after the unbind everything is as before.
func TestBindingAllTheWay(t *testing.T) {
	s := remote("a")
	s.Approved = true
	c := testConfig(t, s, chasing("other", 1))
	w := world(t, c)
	before := w.Window().Workloads[0].Binding
	l := loop{world: w, machine: c.Machine}
	bound := 0
	for i := 1; i <= 30 && bound == 0; i++ {
		l.round(nil)
		if j, ok := l.jobs.Job("/a"); ok && j.Stage == actuate.StageBound {
			bound = i
		}
	}
	if bound == 0 || bound > 8 {
		t.Fatalf("bound in window %d: %+v", bound, l.jobs)
	}
	w.Run(time.Minute)
	win := w.Window()
	wl, _ := win.Workload("/a")
	pages, _ := wl.PagesByNode()
	home := wl.Binding.Mems
	if home.Len() != 1 || !wl.Binding.OursCPUs || !wl.Binding.OursMems {
		t.Fatalf("binding %+v", wl.Binding)
	}
	for i, n := range win.Nodes {
		if !home.Has(n.ID) && pages[i] > unit.MiB {
			t.Errorf("%v on node %d", pages[i], n.ID)
		}
	}
	if f := window.FeaturesOf(wl, win.Length); f.LocalAccessRatio.Or(0) < 0.99 {
		t.Errorf("local access ratio %v", f.LocalAccessRatio)
	}
	l.stop = true
	l.round([]action.Action{{Kind: action.Unbind, Workload: "/a"}})
	win = l.round(nil)
	if wl, _ = win.Workload("/a"); wl.Binding != before {
		t.Errorf("after the unbind %+v, before %+v", wl.Binding, before)
	}
	if len(l.jobs.Jobs) != 0 {
		t.Errorf("jobs: %+v", l.jobs)
	}
}

// With any policy, any specs and a kernel that is sometimes busy: after the last unbind
// every cpuset is what it was.
func TestLoopLeavesNothing(t *testing.T) {
	bound := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := randomConfig(t, r)
		for i := range c.Specs {
			c.Specs[i].Arrive, c.Specs[i].Depart = 0, 0
		}
		c.Step = 5 * time.Second
		w, err := NewWorld(c)
		if err != nil {
			continue // too much at one time
		}
		before := w.Window()
		l := loop{world: w, machine: c.Machine}
		for range 40 {
			l.round(nil)
			bound = max(bound, len(l.jobs.Jobs))
		}
		l.stop = true
		var wanted []action.Action
		for _, j := range l.jobs.Jobs {
			wanted = append(wanted, action.Action{Kind: action.Unbind, Workload: j.Workload})
		}
		win := l.round(wanted)
		for i := 0; len(l.jobs.Jobs) > 0 && i < 200; i++ {
			win = l.round(nil)
		}
		for i, wl := range win.Workloads {
			if wl.Binding != before.Workloads[i].Binding {
				t.Errorf("seed %d: %s has %+v, before %+v", seed, wl.ID, wl.Binding, before.Workloads[i].Binding)
			}
		}
	}
	if bound == 0 {
		t.Error("nothing was ever bound: this tried nothing")
	}
}

// loop is the agent's control loop.
type loop struct {
	world    *World
	machine  machine.Machine
	policy   mao.State
	jobs     actuate.State
	outcomes []action.Outcome
	stop     bool // no wishes of the policy any more
}

func (l *loop) round(wanted []action.Action) window.Window {
	l.world.Run(10 * time.Second)
	w := l.world.Window()
	w.Outcomes = append(w.Outcomes, l.outcomes...)
	if !l.stop {
		l.policy, wanted, _ = mao.Step(l.machine, mao.DefaultConfig(), l.policy, w)
	}
	cfg := actuate.DefaultConfig()
	cfg.Turn = 10 * time.Second
	var steps []action.Step
	l.jobs, steps, l.outcomes = actuate.Step(l.machine, cfg, l.jobs, wanted, w)
	l.world.Apply(steps)
	return w
}
