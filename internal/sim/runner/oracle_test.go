// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/policy/mao"
	"homenode/internal/policy/numad"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

func randomSpec(r *rand.Rand, name string) sim.Spec {
	s := sim.Spec{
		Name: name, Threads: 1 + r.IntN(3), Memory: sim.MemorySpec{Private: unit.Bytes(20+r.IntN(200)) * unit.MiB},
		Work: sim.WorkSpec{Cycles: 1000 * float64(1+r.IntN(30)), Regions: []sim.RegionSpec{{
			Size: unit.Bytes(1+r.IntN(5)) * unit.MiB, Accesses: float64(r.IntN(500)), Parallelism: float64(1 + r.IntN(6)), Stream: r.IntN(2) == 0, Writes: r.Float64(),
		}}},
	}
	if r.IntN(2) == 0 {
		s.Demand.Rate = 50 * float64(1+r.IntN(20))
	}
	return s
}

func contenders(r *rand.Rand, n, nodes int) []Contender {
	var all []Contender
	for i := range n {
		s := randomSpec(r, fmt.Sprintf("w%d", i))
		c := Contender{Spec: &s, Pages: make([]float64, nodes)}
		c.Pages[r.IntN(nodes)] = s.Held()
		all = append(all, c)
	}
	return all
}

// The brute-force twin: every set of nodes for every workload.
func bestOf(o *Oracle, p Placement, i int) float64 {
	if i == len(p) {
		return o.Score(p)
	}
	most := math.Inf(-1)
	for n := Nodes(1); n <= o.all; n++ {
		if n&^o.all == 0 {
			p[i] = n
			most = max(most, bestOf(o, p, i+1))
		}
	}
	return most
}

func TestHandIsTheBestOfAll(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, name := range []string{"two", "four"} {
		sys := memsys.FromShape(shapetest.Shape(t, name))
		for range 12 {
			here := contenders(r, 1+r.IntN(2), len(sys.Nodes))
			o := NewOracle(&sys, here)
			p := Search(o)
			got := o.Score(p)
			want := bestOf(NewOracle(&sys, here), make(Placement, len(here)), 0)
			if math.IsInf(got, -1) || math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: %v has %g, the best %g", name, p, got, want)
			}
		}
	}
}

// Greedy with swaps, as for many workloads, is near the overall best.
func TestHandOfManyIsNear(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	sys := memsys.FromShape(shapetest.Shape(t, "two"))
	for range 8 {
		here := contenders(r, 4, len(sys.Nodes))
		o := NewOracle(&sys, here)
		p := greedy(o, o.Choices())
		for improve(o, o.Choices(), p) {
		}
		got, want := o.Score(p), bestOf(NewOracle(&sys, here), make(Placement, len(here)), 0)
		if got > want+1e-6 || got < want-0.1 { // a score is a mean logarithm: a tenth of speed
			t.Errorf("%v has %g, the best %g", p, got, want)
		}
	}
}

// A placement without room is invalid, and a pinned workload stays.
func TestOracleLimits(t *testing.T) {
	sys := memsys.FromShape(shapetest.Shape(t, "two"))
	big := sim.Spec{Name: "big", Threads: 1, Memory: sim.MemorySpec{Private: unit.Bytes(sys.Nodes[1].Memory)}, Work: sim.WorkSpec{Cycles: 1000}}
	o := NewOracle(&sys, []Contender{{Spec: &big}})
	if s := o.Score(Placement{2}); !math.IsInf(s, -1) {
		t.Errorf("a workload as large as the node has a score of %g", s)
	}
	small := sim.Spec{Name: "small", Threads: 1, Memory: sim.MemorySpec{Private: unit.MiB}, Work: sim.WorkSpec{Cycles: 1000}}
	if p := Search(NewOracle(&sys, []Contender{{Spec: &small, Fixed: 2}})); p[0] != 2 {
		t.Errorf("pinned to node 1, placed on %v", p)
	}
	if p := Search(NewOracle(&sys, nil)); len(p) != 0 {
		t.Errorf("no workload is placed on %v", p)
	}
}

// With more than four nodes: near nodes together, and all.
func TestSetsOfManyNodes(t *testing.T) {
	sys := memsys.FromShape(shapetest.Shape(t, "opteron"))
	o := NewOracle(&sys, contenders(rand.New(rand.NewPCG(1, 1)), 1, len(sys.Nodes)))
	sets := o.sets()
	if len(sets) < len(sys.Nodes)+1 || sets[len(sets)-1] != o.all {
		t.Errorf("%b", sets)
	}
	for i := range sys.Nodes {
		if sets[i].count() != 1 {
			t.Errorf("%b", sets)
		}
	}
}

func simLoop(t *testing.T, name string, s machine.Shape, specs []sim.Spec) (*Loop, *sim.World) {
	t.Helper()
	c := sim.Config{
		Machine: s.Machine(), System: memsys.FromShape(s), Linux: linux.DefaultSettings(), Specs: specs, Seed: 5,
		Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), Step: time.Second,
	}
	Prepare(name, &c)
	w, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(name, Options{MAO: mao.DefaultConfig(), Numad: numad.DefaultConfig(), System: c.System, Specs: specs})
	if err != nil {
		t.Fatal(err)
	}
	return &Loop{World: w, Machine: c.Machine, Policy: p, Actuate: Actuate(name, actuate.DefaultConfig()), Period: 10 * time.Second}, w
}

// In the world itself: a workload whose memory is on the other node is bound, its memory
// comes home, and its reads are local.
func TestBindInTheWorld(t *testing.T) {
	s := shapetest.Shape(t, "two")
	spec := sim.Spec{
		Name: "a", Threads: 1, Approved: true, Replicas: 1, Memory: sim.MemorySpec{Private: 400 * unit.MiB},
		Work:   sim.WorkSpec{Cycles: 10000, Instructions: 10000, Regions: []sim.RegionSpec{{Size: 400 * unit.MiB, Accesses: 300, Parallelism: 1}}},
		Demand: sim.DemandSpec{Wakes: 1},
	}
	spec.Start.Touch = s.Machine().NodeIDs()
	for _, name := range []string{MAOA, MAOB, Numad, Hand} {
		l, w := simLoop(t, name, s, []sim.Spec{spec})
		for range 60 {
			l.Round()
		}
		w.Truth()
		for range 6 {
			l.Round()
		}
		truth := w.Truth()[0]
		local := truth.Local / (truth.Local + truth.Remote)
		if !l.Bound("/a") || l.Counts.Binds != 1 || local < 0.99 || l.Counts.Moved < 100<<20 {
			t.Errorf("%s: bound %v, %+v, %.3f of the reads are local", name, l.Bound("/a"), l.Counts, local)
		}
	}
	l, w := simLoop(t, Interleave, s, []sim.Spec{func() sim.Spec { c := spec; c.Start = sim.StartSpec{}; return c }()})
	for range 10 {
		l.Round()
	}
	if truth := w.Truth()[0]; math.Abs(truth.Local/(truth.Local+truth.Remote)-0.5) > 0.01 {
		t.Errorf("interleaved over two nodes, %.3f of the reads are local", truth.Local/(truth.Local+truth.Remote))
	}
}

// The hand placement requests a refused write again, and it passes.
func TestHandTriesAgain(t *testing.T) {
	s := shapetest.Shape(t, "two")
	spec := sim.Spec{
		Name: "a", Threads: 1, Replicas: 1, Memory: sim.MemorySpec{Private: 100 * unit.MiB},
		Work: sim.WorkSpec{Cycles: 10000, Regions: []sim.RegionSpec{{Size: 100 * unit.MiB, Accesses: 300, Parallelism: 1}}},
	}
	l, _ := simLoop(t, Hand, s, []sim.Spec{spec})
	c := sim.Config{Machine: l.Machine, System: memsys.FromShape(s), Linux: linux.DefaultSettings(), Specs: []sim.Spec{spec}, Seed: 3, Start: time.Unix(0, 0).UTC(), Step: time.Second}
	c.Linux.Busy = 0.6
	busy, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	l.World = busy
	for range 60 {
		l.Round()
	}
	if !l.Bound("/a") || l.Counts.Refused == 0 {
		t.Errorf("bound %v, %+v", l.Bound("/a"), l.Counts)
	}
}
