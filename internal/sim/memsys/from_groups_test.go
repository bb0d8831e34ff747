// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// packaged is a machine of packages with so many nodes of 8 cores, each node with so many
// LLCs. Nodes of a package are 12 and 17 from each other, others 21.
func packaged(packages, nodes, llcs int) machine.Machine {
	const cores = 8
	m := machine.Machine{Origin: "fake:packaged"}
	for pkg := range packages {
		var whole set.CPUSet
		for n := range nodes {
			id := pkg*nodes + n
			var cpus set.CPUSet
			for c := range cores {
				cpu := id*cores + c
				one := set.FromCPUs(cpu)
				cpus = cpus.Union(one)
				m.Cores = append(m.Cores, one)
				m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Node: unit.Some(id), Package: unit.Some(pkg), Online: true})
			}
			m.Nodes = append(m.Nodes, machine.Node{ID: id, CPUs: cpus, Memory: unit.Some(16 * unit.GiB)})
			for l := range llcs {
				part := set.FromCPUs(cpus.IDs()[l*cores/llcs : (l+1)*cores/llcs]...)
				m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: part, Size: unit.Some(16 * unit.MiB)})
			}
			whole = whole.Union(cpus)
		}
		m.Packages = append(m.Packages, whole)
	}
	for a := range m.Nodes {
		var row []unit.Opt[int]
		for b := range m.Nodes {
			switch {
			case a == b:
				row = append(row, unit.Some(10))
			case a/nodes == b/nodes:
				row = append(row, unit.Some([]int{12, 17}[(a+b)%2]))
			default:
				row = append(row, unit.Some(21))
			}
		}
		m.Distances = append(m.Distances, row)
	}
	return m
}

func profileOf(m machine.Machine) *profile.Profile {
	return &profile.Profile{Origin: m.Origin, Machine: profile.FingerprintOf(m, "")}
}

func figure(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }

func systemOf(t *testing.T, m machine.Machine, p *profile.Profile) System {
	t.Helper()
	sys, err := FromMachine(m, p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// crossing is the bytes/s that the CPUs of the first n nodes read, together, from the nodes
// from first on.
func crossing(sys *System, n, first, count int) float64 {
	home := make([]float64, len(sys.Nodes))
	for m := first; m < first+count; m++ {
		home[m] = 1 / float64(count)
	}
	var loads []Load
	for d := range sys.Domains {
		if c := sys.Domains[d]; c.Node < n {
			loads = append(loads, Load{Domain: d, CPUs: c.CPUs, Threads: c.CPUs, Ops: math.Inf(1), Home: home,
				Work: &Work{Cycles: 1, Regions: []Region{{Bytes: 1 << 33, Accesses: 1, Parallelism: 1024, Stream: true}}}})
		}
	}
	sum := 0.0
	for _, n := range new(Solver).Solve(sys, loads).Nodes {
		sum += n.Lines * LineBytes * sys.Hz
	}
	return sum
}

// Nodes at 12 and 17 are one package: nothing is known to limit them. Between packages all
// nodes share one link each way, with a profile and without; with a profile one pair of
// nodes has what was measured, and all of them less than each apart.
func TestPackagesShareTheirLinks(t *testing.T) {
	m := packaged(2, 3, 1)
	sys := systemOf(t, m, nil)
	if len(sys.Path[0][1])+len(sys.Path[0][2]) != 0 || len(sys.Links) != 2 || sys.Path[0][3][0] != sys.Path[2][5][0] {
		t.Errorf("ways %v, %d links", sys.Path, len(sys.Links))
	}
	p := profileOf(m)
	for _, a := range m.Nodes {
		p.Peak = append(p.Peak, profile.NodeFigure{Node: a.ID, Figure: figure(60e9)})
		for _, b := range m.Nodes {
			if a.ID/3 != b.ID/3 {
				p.Bandwidth = append(p.Bandwidth, profile.PairFigure{From: a.ID, To: b.ID, Figure: figure(20e9)})
			}
		}
	}
	sys = systemOf(t, m, p)
	one, all := crossing(&sys, 1, 3, 1), crossing(&sys, 3, 3, 3)
	if math.Abs(one/20e9-1) > 0.01 {
		t.Errorf("a pair reads %.1f GB/s, measured were 20", one/1e9)
	}
	if math.Abs(all/(20e9*3*together)-1) > 0.01 {
		t.Errorf("all nodes read %.1f GB/s from the other package, want %.1f", all/1e9, 20*3*together)
	}
	if !strings.Contains(sys.From, "what the nodes of a package read together") {
		t.Errorf("from %s", sys.From)
	}
}

// A line of another core takes what was measured for its group: below one LLC, between the
// LLCs of a node, between nodes of a package, between packages.
func TestTransfersByGroup(t *testing.T) {
	m := packaged(2, 2, 2)
	p := profileOf(m)
	add := func(a, b int, level profile.Level, ns float64) {
		c := profile.CoreFigure{CPUs: [2]int{a, b}, Level: level, Figure: figure(ns)}
		if level == profile.Between {
			c.Distance = m.Distance(a/8, b/8)
		}
		p.CoreToCore = append(p.CoreToCore, c)
	}
	add(0, 1, profile.SameLLC, 25)
	add(0, 4, profile.SameNode, 105)
	add(0, 8, profile.Between, 120)
	add(0, 16, profile.Between, 250)
	sys := systemOf(t, m, p)
	ns := func(cycles float64) float64 { return cycles / sys.Hz * 1e9 }
	for n := range m.Nodes {
		if here, other := ns(sys.InLLC[n]), ns(sys.Transfer[n][n]); math.Abs(here-25) > 1e-6 || math.Abs(other-105) > 1e-6 {
			t.Errorf("node %d: %v ns below an LLC, %v between two", n, here, other)
		}
	}
	if near, far := ns(sys.Transfer[2][3]), ns(sys.Transfer[3][0]); math.Abs(near-120) > 1e-6 || math.Abs(far-250) > 1e-6 {
		t.Errorf("%v ns in a package, %v between packages", near, far)
	}
	plain := systemOf(t, m, nil)
	if a, b := plain.InLLC[0]/plain.Hz*1e9, plain.Transfer[0][0]/plain.Hz*1e9; a > 35 || b < 80 {
		t.Errorf("estimated: %v ns below an LLC, %v between two", a, b)
	}
	for _, c := range []struct {
		domain int
		want   float64
	}{{0, 25}, {1, 105}} { // two threads add to one line: below one LLC, and below two
		loads := []Load{{CPUs: 1, Threads: 1, Ops: math.Inf(1), Work: &Work{Cycles: 1, Adds: 1, Lines: 1}},
			{Domain: c.domain, CPUs: 1, Threads: 1, Ops: math.Inf(1), Work: &Work{Cycles: 1, Adds: 1, Lines: 1}}}
		if got := ns(new(Solver).Solve(&sys, loads).Loads[0].Cycles); got < c.want || got > 3*c.want {
			t.Errorf("an add takes %v ns, a transfer %v", got, c.want)
		}
	}
}

// A group's fabric fills before its node's memory does, and only its own cores wait for it.
func TestGroupsHaveAFabric(t *testing.T) {
	m := packaged(1, 1, 2)
	p := profileOf(m)
	p.Peak = []profile.NodeFigure{{Node: 0, Figure: figure(200e9)}}
	sys := systemOf(t, m, p)
	busy := Load{CPUs: 4, Threads: 4, Ops: math.Inf(1), Work: &Work{Cycles: 1, Regions: []Region{{Bytes: 1 << 33, Accesses: 1, Parallelism: 1024, Stream: true}}}}
	chase := &Work{Cycles: 1, Regions: []Region{{Bytes: 1 << 33, Accesses: 1, Parallelism: 1}}}
	here := Load{Workload: 1, CPUs: 1, Threads: 1, Ops: math.Inf(1), Work: chase}
	there := here
	there.Workload, there.Domain = 2, 1
	got := new(Solver).Solve(&sys, []Load{busy, here, there})
	if f := got.Fabrics[0]; f.Utilisation < 0.95 || got.Nodes[0].Utilisation > 0.5 {
		t.Errorf("fabric %+v, memory %+v", f, got.Nodes[0])
	}
	if a, b := got.Loads[1].Latency, got.Loads[2].Latency; a < 1.15*b {
		t.Errorf("%v cycles in the busy group, %v in the idle one", a, b)
	}
}

// What one CPU reads tells how many lines it has outstanding.
func TestOutstandingFromProfile(t *testing.T) {
	m := packaged(1, 1, 1)
	p := profileOf(m)
	p.Latency = []profile.PairFigure{{Figure: figure(100)}}
	p.Peak = []profile.NodeFigure{{Node: 0, Figure: figure(40e9)}}
	p.Policies = []profile.PolicyRow{{Policy: "local", Work: "read", CPU: 3, Figure: figure(8e9)}}
	sys := systemOf(t, m, p)
	if got := crossingLocal(&sys, 1); math.Abs(got/8e9-1) > 0.05 {
		t.Errorf("one CPU reads %.2f GB/s, measured were 8", got/1e9)
	}
	if four, eight := crossingLocal(&sys, 4), crossingLocal(&sys, 8); four > 0.75*40e9 || eight < four {
		t.Errorf("four read %.1f GB/s, eight %.1f: of 40, with each 8 alone", four/1e9, eight/1e9)
	}
}

func crossingLocal(sys *System, cpus float64) float64 {
	l := Load{CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Work: &Work{Cycles: 1, Regions: []Region{{Bytes: 1 << 33, Accesses: 1, Parallelism: 1024, Stream: true}}}}
	return new(Solver).Solve(sys, []Load{l}).Nodes[0].Lines * LineBytes * sys.Hz
}

// A profile that contradicts itself is told, and its impossible figures are not used.
func TestContradictions(t *testing.T) {
	m := packaged(2, 1, 1)
	p := profileOf(m)
	for _, l := range [][3]int{{0, 0, 100}, {0, 1, 60}, {1, 1, 100}, {1, 0, 150}} {
		p.Latency = append(p.Latency, profile.PairFigure{From: l[0], To: l[1], Figure: figure(float64(l[2]))})
	}
	p.Loaded = []profile.Curve{{Name: "whole machine, all local", Points: []profile.CurvePoint{
		{Bandwidth: figure(10e9), Latency: figure(50)}, {Bandwidth: figure(60e9), Latency: figure(70)},
	}}}
	sys := systemOf(t, m, p)
	if sys.Latency[0][1] < sys.Latency[0][0] {
		t.Errorf("node 1 is nearer to node 0 than itself: %v", sys.Latency)
	}
	for _, want := range []string{"from node 0 to 1 is 60 ns, below the local 100", "loaded latency below the idle"} {
		if !strings.Contains(sys.From, want) {
			t.Errorf("from %q: want %q", sys.From, want)
		}
	}
}
