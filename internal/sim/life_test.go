// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func on(t *testing.T, w *World, id string) window.Workload {
	t.Helper()
	wl, ok := w.Window().Workload(id)
	if !ok {
		t.Fatalf("no %s", id)
	}
	return wl
}

// Where memory is at the start: bound, interleaved, touched elsewhere, interleaved by the
// world; shared memory touched by one thread or by all.
func TestFirstTouch(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(*Spec)
		interleave bool
		anon0      float64 // share of anonymous memory on node 0
	}{
		{"local", func(s *Spec) { s.Start.CPUs = set.FromCPUs(0, 1) }, false, 1},
		{"bound", func(s *Spec) { s.Start.CPUs, s.Start.Bind = set.FromCPUs(0, 1), set.FromNodes(1) }, false, 0},
		{"interleaved", func(s *Spec) { s.Start.CPUs, s.Start.Interleave = set.FromCPUs(0, 1), set.FromNodes(0, 1) }, false, 0.5},
		{"touched elsewhere", func(s *Spec) { s.Start.CPUs, s.Start.Touch = set.FromCPUs(0, 1), set.FromNodes(1) }, false, 0},
		{"all interleaved", func(s *Spec) { s.Start.CPUs = set.FromCPUs(0, 1) }, true, 0.5},
		// 64 MiB private are half on each node; 64 MiB shared are where the main thread is, or the workers.
		{"main thread", func(s *Spec) { s.Threads, s.Start.CPUs, s.Start.Pinned = 4, set.FromCPUs(0, 1, 2), true }, false, (64.0*2/3 + 64) / 128},
		{"workers", func(s *Spec) {
			s.Threads, s.Start.CPUs, s.Start.Pinned, s.Memory.Toucher = 4, set.FromCPUs(0, 1, 2), true, "workers"
		}, false, 2.0 / 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serving("a", 2, 100)
			c.change(&s)
			cfg := testConfig(t, s)
			cfg.Interleave = c.interleave
			got := on(t, world(t, cfg), "/a").AnonByNode
			near(t, "share of node 0", float64(got[0].Or(0))/float64(got[0].Or(0)+got[1].Or(0)), c.anon0, 0.01)
		})
	}
}

// heldPages is all that a workload has and is owed, except unmapped page cache.
func heldPages(wl *Workload) float64 {
	m := &wl.Group.Memory
	return detmath.Sum(m.Private) + detmath.Sum(m.Shared) + detmath.Sum(m.Mapped) + detmath.Sum(wl.Owed[:])
}

// Refused memory is owed: it is reported, requested again, and given when a workload
// departs. First touch elsewhere is no binding: it falls over to the next node.
func TestRefusedMemory(t *testing.T) {
	big := func(name string) Spec {
		s := serving(name, 1, 10)
		s.Memory = MemorySpec{Private: 461 * unit.MiB, Shared: 64 * unit.MiB, Churn: 2}
		s.Start = StartSpec{CPUs: set.FromCPUs(0, 1)}
		return s
	}
	a, b := big("a"), big("b")
	a.Depart = 2 * time.Hour
	b.Memory.Growth = 256 * unit.MiB
	b.Start.Bind = set.FromNodes(0)
	w := world(t, testConfig(t, a, b))
	win, truth := w.Window(), w.Truth()[1]
	if len(win.Problems) != 1 || !strings.Contains(win.Problems[0], "give /b memory: out of memory: ") || truth.Refused < 290*unit.MiB || truth.Refused > 310*unit.MiB {
		t.Errorf("refused %v: %q", truth.Refused, win.Problems)
	}
	w.Config.Step = time.Minute
	w.Run(time.Hour)
	near(t, "pages it has and is owed", heldPages(w.all[1]), pagesOf(781*unit.MiB), 1e-9)
	w.Run(time.Hour + time.Minute)
	anon, _ := window.SumBytes(on(t, w, "/b").AnonByNode)
	if anon < 745*unit.MiB {
		t.Errorf("it has %v once there is room: %q", anon, w.problems())
	}
	b.Memory.Growth, b.Start.Bind, b.Start.Touch = 0, set.NodeSet{}, set.FromNodes(0)
	a.Start.Touch = b.Start.Touch
	w = world(t, testConfig(t, a, b))
	if truths := w.Truth(); truths[0].Refused+truths[1].Refused != 0 || len(w.Window().Problems) != 0 {
		t.Errorf("touched: %+v", truths)
	}
}

// Memory that is renewed where there is too little stays accounted for.
func TestChurnConserves(t *testing.T) {
	s := serving("a", 2, 100)
	s.Memory = MemorySpec{Private: 700 * unit.MiB, Shared: 500 * unit.MiB, Churn: 5}
	c := testConfig(t, s)
	c.Step = time.Minute
	w := world(t, c)
	w.Apply(steps(action.Step{Kind: action.SetMems, Workload: "/a", Nodes: set.FromNodes(0)}))
	w.Run(time.Hour)
	near(t, "pages it has and is owed", heldPages(w.all[0]), pagesOf(1200*unit.MiB), 1e-9)
	if w.Truth()[0].Refused == 0 {
		t.Error("nothing was refused: this tried nothing")
	}
	w.Apply(steps(action.Step{Kind: action.Restore, Workload: "/a"}))
	w.Run(time.Minute)
	if got := w.Truth()[0].Refused; got != 0 {
		t.Errorf("still refused: %v", got)
	}
}

// Anonymous memory grows by the hour to twice the start's. Page cache grows until there is
// no room. Neither pushes the other out completely.
func TestGrowth(t *testing.T) {
	s := serving("a", 2, 100)
	s.Memory.Growth, s.Memory.CacheGrowth, s.Memory.Churn = 64*unit.MiB, 256*unit.MiB, 1
	c := testConfig(t, s)
	c.Step = time.Minute
	w := world(t, c)
	w.Run(time.Hour)
	wl := on(t, w, "/a")
	anon, _ := window.SumBytes(wl.AnonByNode)
	file, _ := window.SumBytes(wl.FileByNode)
	near(t, "anonymous memory after an hour", float64(anon), float64(192*unit.MiB), 0.001)
	near(t, "files after an hour", float64(file), float64((16+256)*unit.MiB), 0.001)
	w.Run(12 * time.Hour)
	win := w.Window()
	wl, _ = win.Workload("/a")
	anon, _ = window.SumBytes(wl.AnonByNode)
	near(t, "anonymous memory after half a day", float64(anon), float64(256*unit.MiB), 0.001)
	for _, n := range win.Nodes {
		if free := n.Free.Or(0); free > n.Memory.Or(0)/5 || free <= 0 {
			t.Errorf("node %d: %v free of %v", n.ID, free, n.Memory)
		}
	}
}

// NUMA balancing brings memory to the threads over time, and takes CPU for it.
func TestBalancingBrings(t *testing.T) {
	run := func(balancing bool) (unit.Bytes, Truth) {
		s := chasing("a", 2)
		s.Start = StartSpec{CPUs: set.FromCPUs(0, 1), Touch: set.FromNodes(1)}
		c := testConfig(t, s)
		c.Linux.NUMABalancing = balancing
		w := world(t, c)
		w.Run(20 * time.Minute)
		return on(t, w, "/a").AnonByNode[0].Or(0), w.Truth()[0]
	}
	still, off := run(false)
	brought, with := run(true)
	if still != 0 || brought < 60*unit.MiB || with.Ops < 1.3*off.Ops {
		t.Errorf("on its node %v without balancing, %v with; operations %v and %v", still, brought, off.Ops, with.Ops)
	}
}

// Phases change the cost of an operation and the demand.
func TestPhases(t *testing.T) {
	s := serving("a", 2, 100)
	s.Start.CPUs = set.FromCPUs(0, 1)
	s.Phases = []PhaseSpec{{Lasts: time.Minute}, {Lasts: time.Minute, Rate: 2, Cycles: 3, Accesses: 3}}
	w := world(t, testConfig(t, s))
	w.Run(time.Minute)
	one := w.Truth()[0]
	w.Run(time.Minute)
	two := w.Truth()[0]
	near(t, "operations", two.Ops, 2*one.Ops, 1e-6)
	near(t, "DRAM reads", two.Local/two.Ops, 3*one.Local/one.Ops, 0.02)
	near(t, "cycles", two.Cycles/two.Ops, 3*one.Cycles/one.Ops, 0.05)
}

// A workload's work on a node is divided among its last-level caches by the CPUs it may
// use.
func TestDomains(t *testing.T) {
	c := testConfig(t, chasing("a", 2))
	m, y := c.Machine, c.System
	m.LLCs, y.Domains = nil, nil
	for cpu := range 4 {
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: set.FromCPUs(cpu), Size: unit.Some(256 * unit.KiB)})
		y.Domains = append(y.Domains, memsys.Domain{Node: cpu / 2, CPUs: 1, LLC: 256 << 10})
	}
	c.Machine, c.System = m, y
	w := world(t, c)
	for cpus, want := range map[set.CPUSet][]float64{
		set.FromCPUs(0, 1, 2, 3): {0.5, 0.5, 0.5, 0.5},
		set.FromCPUs(1):          {0, 1, 0, 0},
		set.FromCPUs(1, 2, 3):    {0, 1, 0.5, 0.5},
	} {
		w.Apply(steps(action.Step{Kind: action.SetCPUs, Workload: "/a", CPUs: cpus}))
		for d, share := range want {
			near(t, cpus.String(), poolsOf(w).pools[0].share[d], share, 1e-12)
		}
		w.Run(time.Minute)
	}
}

// Replicas are workloads of one service, each with its own noise.
func TestReplicas(t *testing.T) {
	s := serving("a", 1, 100)
	s.Replicas, s.Service, s.Demand.Noise = 3, "ads", 0.2
	w := world(t, testConfig(t, s))
	w.Run(time.Minute)
	truths := w.Truth()
	if len(truths) != 3 || truths[0].Workload != "/a-1" || truths[2].Service != "ads" || truths[0].Asked == truths[1].Asked {
		t.Errorf("replicas: %+v", truths)
	}
}
