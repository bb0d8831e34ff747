// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// server is a two-socket machine of 2 × 24 cores with SMT and 192 GiB per node, with the
// figures that MAO measured.
func server() (machine.Machine, memsys.System) {
	m := machine.Machine{Origin: "fake:server", PageSize: unit.Some(4 * unit.KiB)}
	y := memsys.System{
		Name: "server", How: unit.HowEstimated, From: "test", Hz: 2.7e9,
		Latency: [][]float64{{216, 373}, {373, 216}}, Transfer: [][]float64{{130, 298}, {298, 130}},
		Path: [][][]int{{nil, {1}}, {{0}, nil}}, Links: []memsys.Server{{Cycles: 5}, {Cycles: 5}},
		L2: 1 << 20, L2Cycles: 14, LLCCycles: 60, Atomic: 18, Threads: 2, Queue: memsys.PublishedCurve,
	}
	for n := range 2 {
		var cpus []int
		for c := range 48 {
			cpus = append(cpus, 48*n+c)
			m.CPUs = append(m.CPUs, machine.CPU{ID: 48*n + c, Node: unit.Some(n), Online: true})
		}
		all := set.FromCPUs(cpus...)
		m.Nodes = append(m.Nodes, machine.Node{ID: n, CPUs: all, Memory: unit.Some(192 * unit.GiB)})
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: all, Size: unit.Some(36 * unit.MiB)})
		m.Distances = append(m.Distances, []unit.Opt[int]{unit.Some(10 + 11*n), unit.Some(21 - 11*n)})
		y.Nodes = append(y.Nodes, memsys.Node{ID: n, CPUs: 48, Memory: 192 << 30, Server: memsys.Server{Cycles: 1.6}})
		y.Domains = append(y.Domains, memsys.Domain{Node: n, CPUs: 48, LLC: 36 << 20})
	}
	return m, y
}

// fleetSpecs are 20 services of different sizes that use about half of the server.
func fleetSpecs() []Spec {
	var specs []Spec
	for i := range 20 {
		s := Spec{
			Name: fmt.Sprintf("s%02d", i), Threads: 4 + i%5,
			Memory: MemorySpec{
				Private: unit.Bytes(1+i%4) * unit.GiB, Shared: unit.Bytes(1+i%3) * unit.GiB, Files: 256 * unit.MiB, Cache: unit.GiB,
				CacheGrowth: 64 * unit.MiB, Churn: 0.1,
			},
			Work: WorkSpec{Cycles: 2e6, Instructions: 3e6, Regions: []RegionSpec{
				{Size: 64 * unit.MiB, Accesses: 2000 + 500*float64(i%4), Parallelism: 3},
				{Size: 512 * unit.MiB, Shared: true, Accesses: 3000, Parallelism: 2},
			}},
			Demand: DemandSpec{Rate: 600 + 100*float64(i%7), Low: 0.4, Peak: 20 * time.Hour, Noise: 0.1, Wakes: -1},
		}
		specs = append(specs, s)
	}
	return specs
}

func fleetConfig(seed uint64) Config {
	m, y := server()
	return Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: fleetSpecs(), Seed: seed, Start: start, Step: time.Minute}
}

// A minute of a server of 20 workloads in one step, and its window.
func BenchmarkMinute(b *testing.B) {
	w := world(b, fleetConfig(1))
	for range 60 {
		w.Run(time.Minute)
		w.Window()
	}
	b.ReportAllocs()
	for b.Loop() {
		w.Run(time.Minute)
		w.Window()
		w.Truth()
	}
}

func BenchmarkRun(b *testing.B) {
	w := world(b, fleetConfig(1))
	w.Run(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		w.Run(time.Minute)
	}
}

// A workload takes at most 20 KB of memory, over a thousand worlds that have run.
func TestMemoryOfWorlds(t *testing.T) {
	const worlds = 1000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	all := make([]*World, worlds)
	for i := range all {
		all[i] = world(t, fleetConfig(uint64(i)))
		all[i].Run(3 * time.Minute)
		all[i].Window()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / worlds / 20
	t.Logf("%.0f bytes a workload", each)
	if each > 20000 {
		t.Errorf("%.0f bytes a workload, want at most 20000", each)
	}
	runtime.KeepAlive(all)
}
