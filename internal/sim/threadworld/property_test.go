// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine/machinetest"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
)

// drawConfig is a random world.
func drawConfig(t testing.TB, seed uint64) sim.Config {
	r := detmath.NewRandom(seed, "config")
	c := configOf(shapetest.Shape(t, []string{"two", "four", "smt", "far"}[r.Below(4)]))
	c.Seed = seed
	c.Linux = linux.Settings{
		LoadBalance: r.Below(4) > 0, WakePlacement: r.Below(4) > 0, NUMABalancing: r.Below(3) == 0,
		Fallback: true, Reclaim: true, Busy: float64(r.Below(2)) / 10,
	}
	c.Interleave = r.Below(8) == 0
	for i := range 1 + r.Below(4) {
		c.Specs = append(c.Specs, drawAny(&r, c, fmt.Sprintf("w%d", i)))
	}
	return c
}

func drawAny(r *detmath.Random, c sim.Config, name string) sim.Spec {
	s := drawSpec(r, c.Machine, name)
	s.Start = sim.StartSpec{}
	all := c.Machine.CPUsOf(c.Machine.NodesWithCPUs()).IDs()
	switch r.Below(5) {
	case 0:
		s.Demand.Rate, s.Demand.Noise = float64(1+r.Below(100000)), r.Float()/2
		s.Demand.Wakes = -1
	case 1:
		s.Work.Barrier, s.Work.Spin = 1+r.Below(10000), r.Below(2) == 0
	case 2:
		s.Demand.Think = time.Duration(1+r.Below(300)) * time.Microsecond
	}
	switch r.Below(6) {
	case 0:
		s.Start.CPUs = set.FromCPUs(all[r.Below(len(all))], all[r.Below(len(all))])
	case 1:
		s.Start.CPUs, s.Start.Pinned = set.FromCPUs(all[r.Below(len(all))], all[r.Below(len(all))]), true
	case 2:
		s.Start.Interleave = c.Machine.NodesWithMemory()
	}
	if r.Below(3) == 0 {
		s.CPULimit = 0.2 + 2*r.Float()
	}
	if r.Below(4) == 0 {
		s.Arrive = time.Duration(r.Below(300)) * time.Millisecond
		s.Depart = s.Arrive + time.Duration(1+r.Below(700))*time.Millisecond
	}
	if r.Below(4) == 0 {
		s.Phases = []sim.PhaseSpec{{Lasts: 70 * time.Millisecond, Accesses: 2}, {Lasts: 130 * time.Millisecond, Rate: 0.5}}
	}
	if r.Below(4) == 0 {
		s.Memory.Growth, s.Memory.Churn, s.Memory.CacheGrowth = unit.GiB, 10, unit.GiB
	}
	return s
}

// drawStep is any step that an owner could be asked to take.
func drawStep(r *detmath.Random, w *World) action.Step {
	all := allOf(w)
	wl := all[r.Below(len(all))]
	s := action.Step{Workload: wl.ID}
	node := w.nodes[r.Below(len(w.nodes))]
	switch r.Below(6) {
	case 0:
		s.Kind, s.CPUs = action.SetCPUs, node.set
	case 1:
		s.Kind, s.Nodes = action.SetMems, set.FromNodes(node.id)
	case 2:
		s.Kind, s.Nodes, s.Budget = action.MovePages, set.FromNodes(node.id), unit.Bytes(r.Below(1<<24))
		s.Rate, s.MaxStall = unit.Bytes(r.Below(3))<<26, time.Duration(r.Below(3))*time.Millisecond
	case 3:
		s.Kind = action.Restore
	default:
		s.Kind, s.Thread, s.Release = action.PinThread, 1+r.Below(len(w.ids)+1), r.Below(2) == 0
		if r.Below(4) > 0 {
			s.CPUs = node.set
		}
	}
	return s
}

// TestInvariants checks that random worlds with random steps keep the invariants.
func TestInvariants(t *testing.T) {
	for seed := range uint64(machinetest.Seeds(200, 1500)) {
		c := drawConfig(t, seed)
		w := world(t, c)
		r := detmath.NewRandom(seed, "steps")
		for range 40 {
			cpu, dt := threadTime(w), min(w.Config.Step, untilNext(w))
			w.Run(dt)
			checkWorld(t, w, seed, dt.Seconds(), cpu)
			if r.Below(3) == 0 {
				w.Apply([]action.Step{drawStep(&r, w)})
				checkPlaces(t, w, seed)
			}
			if r.Below(5) == 0 {
				w.Window()
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, c.Specs)
		}
	}
}

// allOf returns the workloads of a world, present or not, by ID.
func allOf(w *World) (all []*workload) {
	for _, wl := range w.of {
		all = append(all, wl)
	}
	slices.SortFunc(all, func(a, b *workload) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// untilNext is the time until the next workload arrives or departs.
func untilNext(w *World) time.Duration {
	next := time.Duration(math.MaxInt64)
	for _, s := range w.Config.Specs {
		for _, at := range []time.Duration{s.Arrive, s.Depart} {
			if at > w.Now() {
				next = min(next, at-w.Now())
			}
		}
	}
	return next
}

func pagesOf(b unit.Bytes) float64 { return math.Ceil(float64(b) / linux.PageBytes) }

func threadTime(w *World) map[int]float64 {
	all := map[int]float64{}
	for _, t := range w.Threads() {
		all[t.ID] = t.CPUSeconds
	}
	return all
}

func checkWorld(t *testing.T, w *World, seed uint64, dt float64, before map[int]float64) {
	t.Helper()
	checkPlaces(t, w, seed)
	by := make([]float64, len(w.cpus))
	for _, wl := range w.live {
		all, sumCPU := 0.0, 0.0
		for i := range wl.threads {
			x := &wl.threads[i]
			used := x.cpuSeconds - before[x.id]
			by[x.cpu] += used
			all += used
			sumCPU += x.cpuSeconds
			if used < 0 || used > dt*(1+1e-9) || math.IsNaN(used) {
				t.Errorf("seed %d: thread %d of %s used %v of %v", seed, x.id, wl.ID, used, dt)
			}
		}
		if limit := wl.Spec.CPULimit; limit > 0 && all > limit*dt*(1+1e-6) {
			t.Errorf("seed %d: %s used %v, its quota is %v", seed, wl.ID, all/dt, limit)
		}
		if math.Abs(sumCPU-wl.Got.CPU) > 1e-9*sumCPU+1e-12 {
			t.Errorf("seed %d: threads of %s used %v, it used %v", seed, wl.ID, sumCPU, wl.Got.CPU)
		}
	}
	for i, used := range by {
		if used > dt*(1+1e-9) {
			t.Errorf("seed %d: cpu %d gave %v in %v", seed, i, used, dt)
		}
	}
}

func checkPlaces(t *testing.T, w *World, seed uint64) {
	t.Helper()
	count := 0
	for i := range w.cpus {
		for _, x := range w.cpus[i].threads {
			count++
			if x.cpu != i || !has(x.mask, i) || !x.allowed().Has(w.cpus[i].id) || !x.allowed().SubsetOf(x.wl.CPUs) {
				t.Errorf("seed %d: thread %d of %s is on cpu %d, may use %v", seed, x.id, x.wl.ID, w.cpus[i].id, x.allowed())
			}
		}
	}
	for _, wl := range w.live {
		count -= len(wl.threads)
		checkPages(t, w, wl, seed)
	}
	if count != 0 {
		t.Errorf("seed %d: %d threads too many", seed, count)
	}
	for n := range w.nodes {
		held := 0.0
		for _, wl := range w.live {
			held += w.anonOn(wl, n) + wl.Group.Memory.Mapped[n] + wl.Group.Memory.Cache[n]
		}
		if most := w.Host.Nodes[n].Pages - w.Host.Nodes[n].Other; held > most*(1+1e-9) {
			t.Errorf("seed %d: node %d holds %v pages of %v", seed, n, held, most)
		}
	}
}

// checkPages wants what the spec says, or more where it grows.
func checkPages(t *testing.T, w *World, wl *workload, seed uint64) {
	t.Helper()
	private := 0.0
	on := make([]float64, len(w.nodes))
	for i := range wl.threads {
		on[w.cpus[wl.threads[i].cpu].node]++
		for _, pages := range wl.threads[i].private {
			private += pages
			if pages < 0 || math.IsNaN(pages) {
				t.Errorf("seed %d: %s: thread %d has %v pages", seed, wl.ID, i, pages)
			}
		}
	}
	if !reflect.DeepEqual(on, wl.Group.On) {
		t.Errorf("seed %d: %s is on %v, its group on %v", seed, wl.ID, on, wl.Group.On)
	}
	m := wl.Spec.Memory
	want := pagesOf(m.Private) + pagesOf(m.Shared) + wl.Grown
	have := private + detmath.Sum(wl.Group.Memory.Shared) + wl.Owed[linux.Private] + wl.Owed[linux.Shared]
	if math.Abs(want-have) > 1e-6*want+1e-6 {
		t.Errorf("seed %d: %s has %v pages, not %v", seed, wl.ID, have, want)
	}
}

// TestSameBytes runs worlds twice.
func TestSameBytes(t *testing.T) {
	for seed := range uint64(60) {
		run := func() any {
			w := world(t, drawConfig(t, seed))
			r := detmath.NewRandom(seed, "steps")
			var all []any
			for range 30 {
				w.Run(10 * time.Millisecond)
				all = append(all, w.Window())
				w.Apply([]action.Step{drawStep(&r, w)})
			}
			return append(all, w.Truth(), w.Threads())
		}
		if a, b := run(), run(); !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: twice, and not the same", seed)
		}
	}
}

// TestWindowsCut: reading windows or not makes no difference to the world.
func TestWindowsCut(t *testing.T) {
	for seed := range uint64(60) {
		a, b := world(t, drawConfig(t, seed)), world(t, drawConfig(t, seed))
		for range 30 {
			a.Run(10 * time.Millisecond)
			b.Run(10 * time.Millisecond)
			a.Window()
		}
		if !reflect.DeepEqual(a.Threads(), b.Threads()) {
			t.Fatalf("seed %d: not the same", seed)
		}
	}
}

// spinning is a closed loop without memory.
func spinning(name string, threads int) sim.Spec {
	return sim.Spec{Name: name, Threads: threads, Memory: sim.MemorySpec{Private: unit.MiB}, Work: sim.WorkSpec{Cycles: 1000, Instructions: 1000}}
}

// TestFairNow: equal threads on one CPU get equal time, and all of it together.
func TestFairNow(t *testing.T) {
	for n := 2; n < 9; n++ {
		s := spinning("a", n)
		s.Start.CPUs = cpuSet(t, "1")
		w := world(t, configOf(shapetest.Shape(t, "two"), s))
		w.Run(time.Second)
		for _, x := range w.Threads() {
			if math.Abs(x.CPUSeconds-1/float64(n)) > 1e-9 {
				t.Errorf("%d threads: thread %d has %v", n, x.ID, x.CPUSeconds)
			}
		}
	}
}

// TestFairInTheLongRun: equal threads get equal time within a few percent, on a number of
// CPUs that does not divide evenly. Nodes are alike: among unequal nodes the busiest per
// CPU gives, again and again, and four threads on three CPUs are less than three on two.
func TestFairInTheLongRun(t *testing.T) {
	for _, x := range []struct {
		shape   string
		threads []int
	}{{"two", []int{5}}, {"two", []int{3, 4}}, {"far", []int{9}}, {"far", []int{5, 6}}, {"smt", []int{11}}} {
		var specs []sim.Spec
		for i, n := range x.threads {
			specs = append(specs, spinning(fmt.Sprint("w", i), n))
		}
		c := configOf(shapetest.Shape(t, x.shape), specs...)
		w := world(t, c)
		w.Run(2000 * time.Second)
		least, most := math.Inf(1), 0.0
		for _, x := range w.Threads() {
			least, most = min(least, x.CPUSeconds), max(most, x.CPUSeconds)
		}
		if least/most < 0.95 {
			t.Errorf("%s %v: the least has %.3f of the most", x.shape, x.threads, least/most)
		}
	}
}

// TestNoCPUIsIdleForLong: where threads wait for CPUs that they may use, those CPUs work.
func TestNoCPUIsIdleForLong(t *testing.T) {
	for seed := range uint64(300) {
		r := detmath.NewRandom(seed, "idle")
		c := configOf(shapetest.Shape(t, []string{"two", "four", "smt"}[r.Below(3)]))
		c.Seed = seed
		cpus := len(c.Machine.CPUs)
		left := cpus + r.Below(3)
		for i := 0; left > 0; i++ {
			n := min(left, 1+r.Below(4))
			s := spinning(fmt.Sprint("w", i), n)
			s.Arrive = time.Duration(r.Below(200)) * time.Millisecond
			c.Specs = append(c.Specs, s)
			left -= n
		}
		w := world(t, c)
		w.Run(700 * time.Millisecond)
		w.Truth()
		w.Run(time.Second)
		used := 0.0
		for _, x := range w.Truth() {
			used += x.CPUSeconds
		}
		if used < 0.99*float64(cpus) {
			t.Errorf("seed %d: %v CPU seconds of %d", seed, used, cpus)
		}
	}
}
