// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/machine/shapetest"
	"homenode/internal/model"
	"homenode/internal/placement"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func opteron(t *testing.T) machine.Machine {
	t.Helper()
	m, err := machine.ParseSysfs(machinetest.Unpack(t, machinetest.Dir(t)+"/64amd64-4p2n4ca2co-opteron6272.tar.bz2"), "recorded:opteron")
	if errors.Is(err, machine.ErrNoCPU) {
		t.Fatal(err)
	}
	return m
}

func problem(t *testing.T, m machine.Machine, containers ...Container) *Problem {
	t.Helper()
	p, err := New(m, nil, containers)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// speeds are measured ones, by number of nodes.
func speeds(t *testing.T, m machine.Machine, vcpus int, byNodes map[int]float64) (all []Speed) {
	t.Helper()
	l, err := placement.Important(m, placement.Options{VCPUs: vcpus})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range l.Placements {
		v := byNodes[p.Nodes.Len()]
		all = append(all, Speed{v, v, v, unit.HowMeasured})
	}
	return all
}

// Four containers that reach the goal on two nodes fill the Opteron; one that needs four
// nodes goes twice, one that needs all once, and one that never reaches it is left.
func TestAlike(t *testing.T) {
	m := opteron(t)
	by := map[int]float64{2: 0.8, 4: 0.95, 8: 1.2}
	for goal, want := range map[float64]int{0.7: 4, 0.9: 2, 1.1: 1, 1.3: 0} {
		p := problem(t, m, Container{"x", 16, goal, 8, speeds(t, m, 16, by)})
		for _, k := range []Packing{p.ML(), p.Exact()} {
			if len(k.Placed) != want || k.Left[0] != 8-want || k.Partial {
				t.Errorf("goal %v: %s places %d, left %v, want %d", goal, k.Policy, len(k.Placed), k.Left, want)
			}
		}
		for policy, want := range map[string]int{NameConservative: 1, NameAggressive: 4, NameSmartAggressive: 4} {
			for _, k := range p.All() {
				if k.Policy == policy && len(k.Placed) != want {
					t.Errorf("%s places %d, want %d whatever the goal", policy, len(k.Placed), want)
				}
			}
		}
	}
}

// A prediction is believed if the low end of its interval misses the goal by 5 % at most.
func TestInterval(t *testing.T) {
	m := opteron(t)
	all := speeds(t, m, 16, map[int]float64{2: 1, 4: 1, 8: 1})
	for i := range all {
		all[i].Low, all[i].High = 0.9, 1.1
	}
	for goal, want := range map[float64]int{0.9: 4, 0.947: 4, 0.948: 0} {
		if k := problem(t, m, Container{"x", 16, goal, 4, all}).ML(); len(k.Placed) != want {
			t.Errorf("goal %v: %d placed, want %d", goal, len(k.Placed), want)
		}
	}
}

// Smart-Aggressive takes the pairs of nodes with a direct link; the Opteron has four of them
// that share no node.
func TestSmartAggressive(t *testing.T) {
	m := opteron(t)
	k := problem(t, m, Container{"x", 16, 0.9, 4, nil}).SmartAggressive()
	for _, one := range k.Placed {
		ids := one.Nodes.IDs()
		if len(ids) != 2 || !one.Pinned || one.Known {
			t.Fatalf("%+v", one)
		}
		if d, _ := m.Distances[ids[0]][ids[1]].Get(); d != 16 {
			t.Errorf("nodes %v are %d apart", ids, d)
		}
	}
}

// TestTwin compares the exact solver with trying everything, on random containers, and holds
// every policy to what is true of all packings.
func TestTwin(t *testing.T) {
	machines := []machine.Machine{opteron(t)}
	for _, name := range []string{"four", "smt", "opteron"} {
		machines = append(machines, shapetest.Shape(t, name).Machine())
	}
	r := rand.New(rand.NewPCG(23, 1))
	ratio, mixed, compared := 0.0, 0, 0
	for range 150 {
		m := machines[r.IntN(len(machines))]
		p := random(t, r, m)
		x, ml := p.Exact(), p.ML()
		if want := twin(p); want != len(x.Placed) || x.Partial {
			t.Fatalf("exact places %d, trying everything %d: %s", len(x.Placed), want, describe(p))
		}
		compared++
		if len(x.Placed) > 0 {
			ratio, mixed = ratio+float64(len(ml.Placed))/float64(len(x.Placed)), mixed+1
		}
		for _, k := range p.All() {
			check(t, p, k)
		}
		if len(ml.Placed) == len(x.Placed) && ml.UsedNodes() < x.UsedNodes() {
			t.Errorf("exact uses %d nodes, ML %d: %s", x.UsedNodes(), ml.UsedNodes(), describe(p))
		}
	}
	if ratio/float64(mixed) < 0.95 {
		t.Errorf("ML places %.3f of the optimum", ratio/float64(mixed))
	}
	t.Logf("%d problems, ML places %.4f of the optimum", compared, ratio/float64(mixed))
}

func random(t *testing.T, r *rand.Rand, m machine.Machine) *Problem {
	t.Helper()
	sizes := []int{2, 4}
	if m.OnlineCPUs().Len() > 16 {
		sizes = []int{8, 16, 24, 32}
	}
	var all []Container
	for i := range 1 + r.IntN(4) {
		vcpus := sizes[r.IntN(len(sizes))]
		l, err := placement.Important(m, placement.Options{VCPUs: vcpus})
		if err != nil {
			continue
		}
		c := Container{Name: fmt.Sprint("c", i), VCPUs: vcpus, Goal: 0.8 + 0.1*float64(r.IntN(4)), Count: 1 + r.IntN(3)}
		for _, one := range l.Placements {
			v := 0.5 + 0.1*float64(one.Nodes.Len()) + 0.3*r.Float64()
			c.Speeds = append(c.Speeds, Speed{v, v * 0.97, v * 1.03, unit.HowEstimated})
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return random(t, r, m)
	}
	return problem(t, m, all...)
}

// twin is the most containers, by trying each copy on each site and leaving it out.
func twin(p *Problem) int {
	var copies []int
	for i, c := range p.Containers {
		for range min(c.Count, len(p.nodes)) {
			copies = append(copies, i)
		}
	}
	var try func(at int, free uint64) int
	try = func(at int, free uint64) int {
		if at == len(copies) {
			return 0
		}
		best := try(at+1, free)
		c := p.Containers[copies[at]]
		tried := map[uint64]bool{}
		for _, s := range p.lists[c.VCPUs].sites {
			if v, ok := c.speedAt(s); ok && p.Meets(v, c.Goal) && s.mask&^free == 0 && !tried[s.mask] && best < len(copies)-at {
				tried[s.mask] = true
				best = max(best, 1+try(at+1, free&^s.mask))
			}
		}
		return best
	}
	return try(0, p.allNodes())
}

func check(t *testing.T, p *Problem, k Packing) {
	t.Helper()
	var taken set.NodeSet
	placed, vcpus := make([]int, len(p.Containers)), 0
	for _, one := range k.Placed {
		c := p.Containers[one.Container]
		if placed[one.Container]++; one.Copy != placed[one.Container] {
			t.Errorf("%s: copy %d of %s comes as number %d", k.Policy, one.Copy, c.Name, placed[one.Container])
		}
		vcpus += c.VCPUs
		if !one.Pinned {
			continue
		}
		if !taken.Intersect(one.Nodes).IsEmpty() || one.CPUs.Len() != c.VCPUs {
			t.Errorf("%s: %s on nodes %s, CPUs %s: %s", k.Policy, c.Name, one.Nodes, one.CPUs, describe(p))
		}
		taken = taken.Union(one.Nodes)
		if meets, _ := p.Verdict(one); !meets && (k.Policy == NameML || k.Policy == NameExact) {
			t.Errorf("%s: %s misses its goal: %+v", k.Policy, c.Name, one)
		}
	}
	for i, c := range p.Containers {
		if placed[i]+k.Left[i] != c.Count {
			t.Errorf("%s: %d of %s placed, %d left of %d", k.Policy, placed[i], c.Name, k.Left[i], c.Count)
		}
	}
	if vcpus > p.Machine.OnlineCPUs().Len() {
		t.Errorf("%s: %d vCPUs: %s", k.Policy, vcpus, describe(p))
	}
}

func describe(p *Problem) string {
	var b strings.Builder
	for _, c := range p.Containers {
		fmt.Fprintf(&b, "%s: %d × %d vCPUs, goal %v, %v; ", c.Name, c.Count, c.VCPUs, c.Goal, c.Speeds)
	}
	return b.String() + p.Machine.Origin
}

func TestRefused(t *testing.T) {
	m := opteron(t)
	good := speeds(t, m, 16, map[int]float64{2: 1, 4: 1, 8: 1})
	bad := append([]Speed{{}}, good[1:]...)
	for want, c := range map[string]Container{
		"count 0":                      {"x", 16, 0.9, 0, nil},
		"goal 0":                       {"x", 16, 0, 1, nil},
		"no placement of 11 vCPUs":     {"x", 11, 1, 1, nil},
		"2 speeds: want one":           {"x", 16, 1, 1, good[:2]},
		"the speed in placement 1 is ": {"x", 16, 1, 1, bad},
		"want 1 to 1024":               {"x", 16, 1, MaxContainers + 1, good},
	} {
		if _, err := New(m, nil, []Container{c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
	if _, err := New(m, nil, nil); err == nil {
		t.Error("nothing to pack is no error")
	}
}

// A figure says how it is known: a probe is measured, a prediction estimated, or modelled where the
// model was not trained on hardware.
func TestPredicted(t *testing.T) {
	data, err := os.ReadFile("../model/testdata/model.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]unit.Source{model.Simulator: unit.HowModelled, "lab": unit.HowModelled, "measured": unit.HowEstimated} {
		m.Source = source
		all, err := Predicted(&m, []float64{100, 110}, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range all {
			probe := slices.Index(m.Forests[0].Probes, i)
			switch {
			case probe >= 0 && (s.How != unit.HowMeasured || s.Low != s.High || s.Speed != []float64{1, 1.1}[probe]):
				t.Errorf("probe %d: %+v", probe, s)
			case probe < 0 && (s.How != want || !(s.Low <= s.Speed && s.Speed <= s.High)):
				t.Errorf("placement %d from %s: %+v", i, source, s)
			}
		}
	}
	for want, bad := range map[string]struct {
		probes     []float64
		confidence float64
	}{
		"the model takes 2 or 3":     {[]float64{1}, 0.9},
		"more than the model knows":  {[]float64{1, 2}, 0.9999},
		"confidence 2: want between": {[]float64{1, 2}, 2},
		"measure it again":           {[]float64{1, 0}, 0.9},
	} {
		if _, err := Predicted(&m, bad.probes, bad.confidence); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
