// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// randomSpecs are 1 to 6 workloads that fit the machine.
func randomSpecs(r *rand.Rand, m machine.Machine) []Spec {
	count := 1 + r.IntN(6)
	have := memoryOf(m, set.NodeSet{}) * 0.8 / float64(count)
	part := func(of float64) unit.Bytes { return unit.Bytes(r.Float64() * of) }
	cpus, mems := onlineCPUs(m).IDs(), m.NodesWithMemory().IDs()
	var specs []Spec
	for i := range count {
		threads := 1 + r.IntN(4)
		s := Spec{Name: fmt.Sprintf("w%d", i), Threads: threads, Approved: true}
		s.Memory = MemorySpec{
			Private: part(have / 2), Shared: part(have / 4), Files: part(have / 8), Cache: part(have / 4),
			Growth: part(have), CacheGrowth: part(4 * have), Churn: float64(r.IntN(3)),
			Toucher: []string{"", "main", "workers"}[r.IntN(3)],
		}
		s.Work = WorkSpec{Cycles: 100 + 1e5*r.Float64(), Instructions: 1000, Regions: []RegionSpec{
			{Size: s.Memory.Private/unit.Bytes(threads)/2 + 1, Accesses: 1000 * r.Float64(), Parallelism: 1 + 3*r.Float64(), Stream: r.IntN(4) == 0, Writes: r.Float64()},
		}}
		if s.Memory.Private < unit.Bytes(2*threads) {
			s.Work.Regions = nil
		}
		if r.IntN(3) > 0 {
			s.Demand = DemandSpec{Rate: 3000 * r.Float64(), Low: r.Float64(), Peak: time.Duration(r.IntN(24)) * time.Hour, Noise: r.Float64() / 2, Wakes: -1, Queue: r.IntN(200), Spread: 2 * r.Float64()}
		} else if r.IntN(2) == 0 {
			s.Demand.Think = time.Duration(r.IntN(1000)) * time.Microsecond
		} else if r.IntN(2) == 0 {
			s.Work.Barrier, s.Work.Spin = 1+r.IntN(1000), r.IntN(2) == 0
		}
		switch r.IntN(6) {
		case 0:
			s.Start.CPUs = set.FromCPUs(cpus[r.IntN(len(cpus))], cpus[r.IntN(len(cpus))])
			s.Start.Pinned = r.IntN(2) == 0
		case 1:
			s.Start.Touch = set.FromNodes(mems[r.IntN(len(mems))])
		case 2:
			s.Start.Interleave = m.NodesWithMemory()
		case 3:
			s.CPULimit = 0.2 + 2*r.Float64()
		}
		if r.IntN(4) == 0 {
			s.Arrive = time.Duration(r.IntN(60)) * time.Second
		}
		if r.IntN(4) == 0 {
			s.Depart = s.Arrive + time.Duration(1+r.IntN(60))*time.Second
		}
		if r.IntN(4) == 0 {
			s.Phases = []PhaseSpec{{Lasts: 10 * time.Second, Rate: 0.5}, {Lasts: 15 * time.Second, Accesses: 2, Cycles: 1.5}}
		}
		specs = append(specs, s)
	}
	return specs
}

func randomStep(r *rand.Rand, c Config) action.Step {
	nodes := func() set.NodeSet {
		return set.FromNodes(c.Machine.Nodes[r.IntN(len(c.Machine.Nodes))].ID, r.IntN(len(c.Machine.Nodes)+1))
	}
	s := action.Step{Workload: fmt.Sprintf("/w%d", r.IntN(7))}
	switch r.IntN(8) {
	case 0, 1:
		s.Kind, s.CPUs = action.SetCPUs, c.Machine.CPUsOf(nodes())
	case 2:
		s.Kind, s.CPUs = action.SetCPUs, set.FromCPUs(r.IntN(10), r.IntN(10))
	case 3:
		s.Kind, s.Nodes = action.SetMems, nodes()
	case 4, 5:
		s.Kind, s.Nodes, s.Budget, s.Rate, s.PageCache = action.MovePages, nodes(), unit.Bytes(r.IntN(1<<27)), unit.Bytes(r.IntN(1<<28)), r.IntN(2) == 0
	case 6:
		s.Kind = action.Restore
	default:
		s.Kind = action.Freeze
	}
	return s
}

func steps(s ...action.Step) []action.Step { return s }

func randomConfig(t *testing.T, r *rand.Rand) Config {
	s := shapetest.Shape(t, []string{"two", "four", "smt", "opteron", "far"}[r.IntN(5)])
	c := configOf(s)
	c.Specs = randomSpecs(r, c.Machine)
	c.Seed, c.Step = r.Uint64(), []time.Duration{time.Millisecond * 100, time.Second, 7 * time.Second}[r.IntN(3)]
	c.Linux = linux.Settings{LoadBalance: r.IntN(2) == 0, WakePlacement: r.IntN(2) == 0, NUMABalancing: r.IntN(2) == 0, Fallback: r.IntN(2) == 0, Reclaim: r.IntN(2) == 0, Busy: 0.1}
	c.Interleave = r.IntN(4) == 0
	return c
}

// In any world, after any step: CPU time, pages and requests are conserved, windows are
// valid, and nothing exceeds its limits.
func TestProperties(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := randomConfig(t, r)
		w := world(t, c)
		sums := map[string]*Counts{}
		for range 12 {
			for range r.IntN(3) {
				w.Apply([]action.Step{randomStep(r, c)})
			}
			w.Run(time.Duration(1+r.IntN(10)) * time.Second)
			checkHost(t, seed, w)
			checkRequests(t, seed, w, sums)
			checkWindow(t, seed, c, w.Window())
			if t.Failed() {
				t.Fatalf("seed %d, machine %s", seed, c.Machine.Origin)
			}
		}
	}
}

// checkHost checks what no window shows.
func checkHost(t *testing.T, seed uint64, w *World) {
	t.Helper()
	if len(w.live) != len(w.Host.Groups) {
		t.Fatalf("%d workloads, %d groups", len(w.live), len(w.Host.Groups))
	}
	for i, wl := range w.live {
		g := &wl.Group
		if w.Host.Groups[i] != g {
			t.Errorf("group %d is not the group of %s", i, wl.ID)
		}
		on := 0.0
		for n := range w.Busy {
			on += g.On[n]
			if g.On[n] < 0 || g.Used[n] < 0 || g.CPUs[n] == 0 && (g.On[n] > 1e-9 || g.Used[n] > 1e-9) || g.Used[n] > g.CPUs[n]+1e-9 {
				t.Errorf("%s on node %d: %v threads use %v of its %v CPUs", wl.ID, n, g.On[n], g.Used[n], g.CPUs[n])
			}
		}
		if math.Abs(on-g.Threads) > 1e-6 {
			t.Errorf("%s has %v threads, they are %v", wl.ID, g.Threads, on)
		}
		if g.Quota > 0 && detmath.Sum(g.Used) > g.Quota+1e-9 {
			t.Errorf("%s uses %v of a quota of %v", wl.ID, detmath.Sum(g.Used), g.Quota)
		}
	}
	for n := range w.Busy {
		pages := w.Host.Nodes[n].Other
		for _, wl := range w.live {
			pages += poolsOf(w).anonOn(&wl.Group, n) + wl.Group.Memory.Mapped[n] + wl.Group.Memory.Cache[n]
		}
		if pages > w.Host.Nodes[n].Pages+1 {
			t.Errorf("node %d: %v pages of %v", n, pages, w.Host.Nodes[n].Pages)
		}
	}
}

// checkRequests: requested = done + dropped + waiting; CPU time is operations × cycles.
func checkRequests(t *testing.T, seed uint64, w *World, sums map[string]*Counts) {
	t.Helper()
	queues := map[string]float64{}
	for _, wl := range w.live {
		queues[wl.ID] = wl.queue
	}
	for _, x := range w.Truth() {
		s := sums[x.Workload]
		if s == nil {
			s = &Counts{}
			sums[x.Workload] = s
		}
		s.add(&Counts{Asked: x.Asked, Ops: x.Ops, Dropped: x.Dropped})
		near(t, x.Workload+"'s requests", s.Ops+s.Dropped+queues[x.Workload], s.Asked, 1e-6)
		near(t, x.Workload+"'s CPU time", x.CPUSeconds*w.Config.System.Hz, x.Cycles, 1e-9)
		if x.Ops < 0 || x.Dropped < 0 || x.Latency < 0 || x.P99 < 0 || math.IsNaN(x.Latency+x.P99) || x.Stalled > x.Seconds+1e-9 || x.BoundSeconds > x.Seconds+1e-9 {
			t.Errorf("%+v", x)
		}
	}
}

func checkWindow(t *testing.T, seed uint64, c Config, win window.Window) {
	t.Helper()
	if err := win.Validate(); err != nil {
		t.Error(err)
	}
	for i, n := range win.Nodes {
		busy := 0.0
		for _, wl := range win.Workloads {
			busy += wl.CPUByNode[i].Or(0)
		}
		if n.CPUBusy.Or(0) > float64(n.CPUs.Len())+1e-6 || busy > n.CPUBusy.Or(0)+1e-6 && len(c.Specs) == len(win.Workloads) {
			t.Errorf("node %d of %v CPUs: busy %v, workloads %v", n.ID, n.CPUs, n.CPUBusy, busy)
		}
		if got := n.Free.Or(0) + n.Anon.Or(0) + n.File.Or(0); got > n.Memory.Or(0) {
			t.Errorf("node %d of %v: %v", n.ID, n.Memory, got)
		}
	}
	for _, wl := range win.Workloads {
		spec := c.Specs[0]
		for _, s := range c.Specs {
			if "/"+s.Name == wl.ID {
				spec = s
			}
		}
		b := wl.Binding
		if own := spec.Start.CPUs; b.CPUs.IsEmpty() || b.Mems.IsEmpty() || !b.OursCPUs && !own.IsEmpty() && b.CPUs != own || !b.CPUs.SubsetOf(onlineCPUs(c.Machine)) || !b.Mems.SubsetOf(c.Machine.NodesWithMemory()) {
			t.Errorf("%s: binding %+v of %v", wl.ID, b, own)
		}
		if _, err := window.Encode(win); err != nil {
			t.Error(err)
		}
		if wl.CPU.Or(0) > float64(spec.Threads)+1e-6 || spec.CPULimit > 0 && wl.CPU.Or(0) > spec.CPULimit+1e-6 {
			t.Errorf("%s: CPU %v of %d threads, quota %v", wl.ID, wl.CPU, spec.Threads, spec.CPULimit)
		}
		if wl.StallCycles.Or(0) > wl.Cycles.Or(0)+1 {
			t.Errorf("%s: %v stall cycles of %v", wl.ID, wl.StallCycles, wl.Cycles)
		}
	}
}
