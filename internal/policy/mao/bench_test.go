// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// steadyHost is a typical server of a fleet: 2 nodes of 16 CPUs; 10 workloads bound and at
// home; 6 approved (3 on target, 3 that fit nowhere); 4 not approved. Figures jitter, as a
// kernel's do.
func steadyHost(r *rand.Rand) (machine.Machine, []window.Window) {
	h := &windowtest.Host{}
	h.Shape([]int{0, 1}, 16, 128*unit.GiB)
	var windows []window.Window
	for range 64 {
		for i := range 20 {
			steadyLoad(r, h, i)
		}
		windows = append(windows, h.Window())
		last := &windows[len(windows)-1]
		last.Length = time.Minute
		for k := range last.Workloads {
			wl := &last.Workloads[k] // each window has its own figures
			wl.CPUByNode, wl.AnonByNode, wl.FileByNode = slices.Clone(wl.CPUByNode), slices.Clone(wl.AnonByNode), slices.Clone(wl.FileByNode)
		}
	}
	return h.Machine, windows
}

func steadyLoad(r *rand.Rand, h *windowtest.Host, i int) {
	l := h.Load(fmt.Sprintf("/system.slice/service-%02d", i))
	l.Approved = i < 16
	home, cpu, elsewhere := i%2, 1+0.2*r.Float64(), 0.0
	local, remote := uint64(9_900_000+r.IntN(10_000)), uint64(10_000)
	if i >= 13 {
		elsewhere, remote = 0.5, 9_000_000
	}
	if i >= 13 && i < 16 {
		cpu = 12
	}
	for n := range 2 {
		share := elsewhere
		if n == home {
			share = 1 - elsewhere
		}
		l.CPUByNode[n] = unit.Measured(cpu*share, "cpuacct.usage_percpu")
		l.AnonByNode[n] = unit.Measured(unit.Bytes(share*float64(4*unit.GiB)), "memory.numa_stat")
		l.FileByNode[n] = unit.Measured(unit.Bytes(share*float64(256*unit.MiB)), "memory.numa_stat")
	}
	l.CPU = unit.Measured(cpu, "cpu.stat")
	l.LocalLoads = unit.Modelled(local, "perf r01d3")
	l.RemoteLoads = unit.Modelled(remote, "perf r10d3")
	l.Cycles = unit.Modelled(uint64(3e9), "perf cycles")
	l.StallCycles = unit.Modelled(uint64(1e9), "perf stalled-cycles-backend")
	l.Instructions = unit.Modelled(uint64(4e9), "perf instructions")
	l.Binding.CPUs, l.Binding.Mems = set.FromCPUs(rangeOf(32)...), set.FromNodes(0, 1)
	if i < 10 {
		l.Binding = window.Binding{CPUs: set.FromCPUs(rangeOf(32)[16*home : 16*home+16]...), Mems: set.FromNodes(home), OursCPUs: true, OursMems: true}
	}
}

// steadyState is the state after 600 windows: nodes have their whole history.
func steadyState(m machine.Machine, cfg Config, windows []window.Window) State {
	var st State
	for i := range 10 {
		st.Workloads = append(st.Workloads, Memory{Workload: windows[0].Workloads[i].ID, Nodes: set.FromNodes(i % 2)})
	}
	for n := range uint64(600) {
		st, _, _ = Step(m, cfg, st, nth(windows, n))
	}
	return st
}

func nth(windows []window.Window, n uint64) window.Window {
	w := windows[n%uint64(len(windows))]
	w.Seq = n
	return w
}

func BenchmarkSteadyStep(b *testing.B) {
	m, windows := steadyHost(rand.New(rand.NewPCG(1, 5)))
	cfg := DefaultConfig()
	st, n := steadyState(m, cfg, windows), uint64(600)
	b.ReportAllocs()
	for b.Loop() {
		st, _, _ = Step(m, cfg, st, nth(windows, n))
		n++
	}
}
