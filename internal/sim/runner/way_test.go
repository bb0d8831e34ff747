// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// binder binds one workload in one window, and again after a refusal.
type binder struct {
	id       string
	nodes    set.NodeSet
	at       int
	n        int
	outcomes []action.Outcome
}

func (*binder) Name() string { return "binder" }

func (b *binder) Step(_ machine.Machine, w window.Window) []action.Action {
	for _, o := range w.Outcomes {
		if o.Step.Workload == b.id && o.Status == action.Refused {
			b.outcomes = append(b.outcomes, o)
		}
	}
	if b.n++; b.n != b.at+1 {
		return nil
	}
	return []action.Action{{Kind: action.Bind, Workload: b.id, Nodes: b.nodes, Reason: action.Reason{Rule: "test", Workload: b.id}}}
}

// slowWorld is a world whose mover slows down to a tenth.
type slowWorld struct {
	World
	slow bool
}

func (w *slowWorld) Apply(steps []action.Step) {
	for i := range steps {
		if w.slow && steps[i].Kind == action.MovePages {
			steps[i].Rate /= 10
		}
	}
	w.World.Apply(steps)
}

// onItsWay is a service that reads its memory, beside others, on a machine of its shape.
func onItsWay(t *testing.T, seed uint64) (*Loop, *binder, *slowWorld) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	s := shapetest.Shape(t, []string{"two", "four", "opteron"}[r.IntN(3)])
	m := s.Machine()
	ids := m.NodesWithMemory().IDs()
	have := unit.Bytes(256) * unit.MiB
	for _, n := range m.Nodes {
		if b, ok := n.Memory.Get(); ok && b > 0 {
			have = min(have, b/4)
		}
	}
	service := func(name string, threads int, touch bool) sim.Spec {
		private := unit.Bytes(r.Int64N(int64(have/2))) + unit.Bytes(threads)*unit.MiB
		x := sim.Spec{
			Name: name, Threads: threads,
			Memory: sim.MemorySpec{Private: private, Shared: unit.Bytes(r.Int64N(int64(have/2))) + 8*unit.MiB},
			Work: sim.WorkSpec{Cycles: 20000, Instructions: 30000, Regions: []sim.RegionSpec{
				{Size: private / unit.Bytes(threads), Accesses: 100 * r.Float64(), Parallelism: 2},
				{Size: 8 * unit.MiB, Shared: true, Accesses: 300 * r.Float64(), Parallelism: 2},
			}},
		}
		if touch {
			x.Start.Touch = set.FromNodes(ids[r.IntN(len(ids))])
		}
		return x
	}
	c := sim.Config{Machine: m, System: memsys.FromShape(s), Linux: linux.DefaultSettings(), Seed: seed, Start: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), Step: time.Second}
	c.Specs = append(c.Specs, service("a", 1+r.IntN(2), r.IntN(3) > 0))
	for range r.IntN(3) {
		c.Specs = append(c.Specs, service("b"+string(rune('0'+len(c.Specs))), 1, false))
	}
	w, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	cfg := actuate.DefaultConfig()
	cfg.Rate = unit.Bytes(1<<r.IntN(5)) * unit.MiB
	b := &binder{id: "/a", nodes: set.FromNodes(ids[r.IntN(len(ids))]), at: 6}
	slow := &slowWorld{World: w}
	return &Loop{World: slow, Machine: m, Policy: b, Actuate: cfg, Period: 5 * time.Second}, b, slow
}

// These worlds do not know how a binding is estimated. No window on the way is more than 5
// % less local than the one before for longer than expected. One more window is allowed:
// the last one that the actuator sees before it undoes the binding.
func TestNoWindowOnTheWayIsWorse(t *testing.T) {
	orders, undone, worse := map[actuate.Order]int{}, 0, 0
	for seed := range uint64(60) {
		l, b, _ := onItsWay(t, seed)
		before, below := -1.0, time.Duration(0)
		var last actuate.Way
		for n := range 120 {
			w := l.Round()
			a, _ := w.Workload("/a")
			ratio := float64(window.LocalAccess(&a).Or(-1))
			if n == b.at {
				before = ratio
			}
			if n > b.at && !last.Over && last.Order != "" {
				if below += w.Length; ratio >= 0.95*min(before, float64(last.End)) {
					below = 0
				} else {
					worse++
				}
				if limit := max(2*w.Length, expected(last)+w.Length); below > limit {
					t.Fatalf("seed %d window %d: %v of %v local, for %v: %+v", seed, n, ratio, before, below, last.Reason("", set.NodeSet{}))
				}
			}
			job, _ := l.Jobs().Job("/a")
			last = job.Way
		}
		if orders[last.Order]++; len(b.outcomes) > 0 && strings.HasPrefix(b.outcomes[0].Step.Reason.Rule, "actuate.undone") {
			undone++
			t.Logf("seed %d: %s", seed, b.outcomes[0].Detail)
		}
	}
	t.Logf("orders %v, undone %d, windows that were worse %d", orders, undone, worse)
	if orders[actuate.CPUsFirst] < 5 || orders[actuate.InSteps] < 5 || undone > 3 {
		t.Errorf("orders %v, undone %d", orders, undone)
	}
}

// The loss on the way, in windows' worth of local accesses, is at most 0.6 of the loss with
// CPUs first in the same worlds. The rest is mostly from workloads that are all local
// before, and are bound elsewhere.
func TestWayLosesLess(t *testing.T) {
	lost := map[actuate.Choice]float64{}
	for _, choice := range []actuate.Choice{actuate.ByEstimate, actuate.AlwaysCPUsFirst} {
		for seed := range uint64(60) {
			l, b, _ := onItsWay(t, seed)
			l.Actuate.Way = choice
			before := 1.0
			for n := range 120 {
				w := l.Round()
				a, _ := w.Workload("/a")
				ratio := float64(window.LocalAccess(&a).Or(1))
				if n == b.at {
					before = ratio
				}
				if n > b.at {
					lost[choice] += max(0, before-ratio)
				}
			}
		}
	}
	if t.Log(lost); lost[actuate.ByEstimate] > 0.6*lost[actuate.AlwaysCPUsFirst] {
		t.Errorf("lost %v", lost)
	}
}

func expected(w actuate.Way) time.Duration {
	for _, e := range w.Orders {
		if e.Order == w.Order {
			return e.Below
		}
	}
	return 0
}

// A mover slows down to a tenth while the memory follows: the binding is undone and
// reported, and the old settings are back.
func TestSlowMoverIsUndone(t *testing.T) {
	slowed, undone := 0, 0
	for seed := range uint64(60) {
		l, b, slow := onItsWay(t, seed)
		l.Actuate.Rate /= 2 // so that most moves take several windows
		for range 80 {
			l.Round()
			job, _ := l.Jobs().Job("/a")
			moving := job.Stage == actuate.StageAhead || job.Stage == actuate.StagePages
			if way := job.Way; !slow.slow && moving && way.Rate.How == unit.HowMeasured && !way.Over && way.Moved > 0 && way.Moved < way.Bytes/2 {
				slow.slow = true
				slowed++
			}
		}
		if !slow.slow {
			continue
		}
		w := l.World.Window()
		a, _ := w.Workload("/a")
		switch {
		case len(b.outcomes) == 0:
			if job, _ := l.Jobs().Job("/a"); !job.Way.Over {
				t.Errorf("seed %d: neither home nor undone: %s %+v", seed, job.Stage, job.Way.Reason("", job.Nodes))
			}
		case b.outcomes[0].Step.Reason.Rule != "actuate.undone.slow" || !strings.Contains(words.Became(b.outcomes[0]), "less than a third of the"):
			t.Errorf("seed %d: %s %s", seed, b.outcomes[0].Step.Reason.Rule, words.Became(b.outcomes[0]))
		case a.Binding.OursCPUs || a.Binding.OursMems:
			t.Errorf("seed %d: still bound: %+v", seed, a.Binding)
		default:
			undone++
		}
	}
	if t.Logf("%d slowed, %d undone", slowed, undone); undone < 10 || undone < slowed*3/4 {
		t.Errorf("%d slowed, %d undone", slowed, undone)
	}
}
