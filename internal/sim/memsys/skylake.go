// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Figures of a two-socket Skylake-SP as printed by Intel's MLC 3.10 (facts/latency.md): ns
// and bytes/s from the row's CPUs to the column's memory, and latency by bandwidth of the
// whole machine, all reads local. They were not measured by this project.
var (
	skylakeLatency   = [2][2]float64{{90.2, 144.3}, {143.2, 89.1}}
	skylakeBandwidth = [2][2]float64{{104.4e9, 34.3e9}, {34.3e9, 106.0e9}}
	skylakeLoaded    = []Point{
		{2.0e9, 91.7}, {3.6e9, 92.5}, {6.0e9, 92.5}, {8.2e9, 95.1}, {11.2e9, 93.3}, {16.1e9, 94.1}, {20.6e9, 95.4},
		{26.4e9, 96.2}, {36.8e9, 102.5}, {50.3e9, 101.4}, {61.6e9, 103.7}, {79.3e9, 105.6}, {110.2e9, 116.3},
		{164.1e9, 128.7}, {201.8e9, 163.3}, {206.8e9, 167.5}, {210.6e9, 166.2},
	}
)

// Size of a Xeon Platinum 8180, which the figures may be from.
const (
	skylakeCores = 28 // per node, with two threads each
	skylakeLLC   = 38*unit.MiB + 512*unit.KiB
	skylakeL2    = unit.MiB
	skylakeNode  = 192 * unit.GiB
)

// DualSkylake is a server like MAO's: two nodes of 28 cores with two threads and 192 GiB
// each, with its published figures. CPUs are numbered as Linux does: all first threads
// first.
func DualSkylake() (machine.Machine, System) {
	m := skylakeMachine()
	p := skylakeProfile(m)
	y, err := FromMachine(m, &p)
	if err != nil {
		panic(err) // both are defined above
	}
	y.Name, y.From = "dual-skylake", "published figures of a two-socket Skylake-SP (Intel's MLC); waits on links are a guess"
	return m, y
}

func skylakeMachine() machine.Machine {
	m := machine.Machine{Origin: "fake:dual-skylake", PageSize: unit.Some(4 * unit.KiB)}
	for id := range 2 {
		var cpus set.CPUSet
		for core := id * skylakeCores; core < (id+1)*skylakeCores; core++ {
			pair := set.FromCPUs(core, core+2*skylakeCores)
			cpus = cpus.Union(pair)
			m.Cores = append(m.Cores, pair)
			m.L2s = append(m.L2s, machine.Cache{Level: 2, CPUs: pair, Size: unit.Some(skylakeL2)})
		}
		m.Nodes = append(m.Nodes, machine.Node{ID: id, CPUs: cpus, Memory: unit.Some(skylakeNode)})
		m.Packages = append(m.Packages, cpus)
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: cpus, Size: unit.Some(skylakeLLC)})
	}
	m.Distances = [][]unit.Opt[int]{{unit.Some(10), unit.Some(21)}, {unit.Some(21), unit.Some(10)}}
	for id := range 4 * skylakeCores {
		core := id % (2 * skylakeCores)
		node := core / skylakeCores
		m.CPUs = append(m.CPUs, machine.CPU{ID: id, Node: unit.Some(node), Package: unit.Some(node), LLC: unit.Some(node),
			Core: unit.Some(core), L2: unit.Some(core), Online: true})
	}
	return m
}

func skylakeProfile(m machine.Machine) profile.Profile {
	one := func(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }
	p := profile.Profile{Origin: m.Origin, How: unit.HowMeasured, Machine: profile.FingerprintOf(m, "")}
	for from := range 2 {
		for to := range 2 {
			p.Latency = append(p.Latency, profile.PairFigure{From: from, To: to, Figure: one(skylakeLatency[from][to])})
			p.Bandwidth = append(p.Bandwidth, profile.PairFigure{From: from, To: to, Figure: one(skylakeBandwidth[from][to])})
		}
		p.Peak = append(p.Peak, profile.NodeFigure{Node: from, Figure: one(skylakeBandwidth[from][from])})
	}
	all := profile.Curve{Name: "whole machine, all local"}
	for _, q := range skylakeLoaded {
		all.Points = append(all.Points, profile.CurvePoint{Bandwidth: one(q.X), Latency: one(q.Y)})
	}
	p.Loaded = []profile.Curve{all}
	return p
}
