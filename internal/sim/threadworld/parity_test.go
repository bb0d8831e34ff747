// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"
	"math"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// drawSpec is a workload whose threads and pages stay where they are put.
func drawSpec(r *detmath.Random, m machine.Machine, name string) sim.Spec {
	size := func(bound int) unit.Bytes { return unit.Bytes(1+r.Below(bound)) * 256 * unit.KiB }
	s := sim.Spec{Name: name, Threads: 1 + r.Below(6)}
	w := &s.Work
	w.Cycles, w.Instructions = float64(1+r.Below(400)), float64(1+r.Below(400))
	for range 1 + r.Below(2) {
		w.Regions = append(w.Regions, sim.RegionSpec{
			Size: size(40), Shared: r.Below(2) == 0, Accesses: float64(1 + r.Below(9)),
			Parallelism: float64(1 + r.Below(4)), Stream: r.Below(3) == 0, Writes: r.Float() / 2,
		})
	}
	for _, region := range w.Regions {
		if region.Shared {
			s.Memory.Shared += region.Size
		} else {
			s.Memory.Private += region.Size * unit.Bytes(s.Threads)
		}
	}
	if r.Below(3) == 0 {
		w.Adds, w.Lines = float64(r.Below(3)), float64(1+r.Below(2000))
	}
	node := m.Nodes[r.Below(len(m.Nodes))]
	for node.CPUs.IsEmpty() {
		node = m.Nodes[r.Below(len(m.Nodes))]
	}
	ids := node.CPUs.IDs()
	s.Threads = min(s.Threads, len(ids))
	s.Start.CPUs, s.Start.Pinned = set.FromCPUs(ids[:s.Threads]...), true
	switch mem := m.Nodes[r.Below(len(m.Nodes))].ID; r.Below(4) {
	case 0:
		s.Start.Interleave = m.NodesWithMemory()
	case 1:
		s.Start.Touch = set.FromNodes(mem)
	}
	return s
}

// TestParityWithSim compares worlds in which nothing moves: a workload alone, or several on
// CPUs of their own, with memory anywhere.
func TestParityWithSim(t *testing.T) {
	compared := 0
	for seed := range uint64(200) {
		r := detmath.NewRandom(seed, "parity")
		c := configOf(shapetest.Shape(t, []string{"two", "four", "smt", "far"}[r.Below(4)]))
		c.Specs = []sim.Spec{drawSpec(&r, c.Machine, "a")}
		switch r.Below(4) {
		case 0:
			c.Specs[0].Demand.Think = time.Duration(1+r.Below(200)) * time.Microsecond
		case 1:
			c.Specs[0].CPULimit = 0.3 + r.Float()
		}
		compared += compareWithSim(t, fmt.Sprint("seed ", seed), c)
	}
	if compared < 20 {
		t.Errorf("only %d worlds compared", compared)
	}
}

func compareWithSim(t *testing.T, name string, c sim.Config) (compared int) {
	t.Helper()
	w := world(t, c)
	c.Step = 100 * time.Millisecond
	s, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []interface {
		Run(time.Duration)
		Truth() []sim.Truth
	}{w, s} {
		x.Run(time.Second)
		x.Truth()
		x.Run(time.Second)
	}
	as, bs := w.Truth(), s.Truth()
	for i := range as {
		a, b := as[i], bs[i]
		for _, f := range []struct {
			what string
			a, b float64
		}{
			{"operations", a.Ops, b.Ops}, {"CPU", a.CPUSeconds, b.CPUSeconds}, {"instructions", a.Instructions, b.Instructions},
			{"local reads", a.Local, b.Local}, {"remote reads", a.Remote, b.Remote},
		} {
			if math.Abs(f.a-f.b) > 1e-3*max(f.a, f.b, 1) {
				t.Errorf("%s: %s of %s: %v, sim has %v (%+v)", name, f.what, a.Workload, f.a, f.b, c.Specs[i])
			}
			compared++
		}
	}
	return compared
}

// TestParityOfQueues compares requests at a rate: both worlds have the same queue, and give
// it the same operations.
func TestParityOfQueues(t *testing.T) {
	for seed := range uint64(40) {
		r := detmath.NewRandom(seed, "queues")
		c := configOf(shapetest.Shape(t, "two"))
		s := drawSpec(&r, c.Machine, "a")
		c.Specs = []sim.Spec{s}
		probe := world(t, c)
		probe.Run(time.Second)
		most := probe.Truth()[0].Ops
		s.Demand.Rate, s.Demand.Wakes = most*(0.2+1.1*r.Float()), -1
		c.Specs = []sim.Spec{s}
		w := world(t, c)
		x, err := sim.NewWorld(c)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(time.Second)
		x.Run(time.Second)
		w.Truth()
		x.Truth()
		w.Run(20 * time.Second)
		x.Run(20 * time.Second)
		a, b := w.Truth()[0], x.Truth()[0]
		if math.Abs(a.Ops/b.Ops-1) > 2e-3 || math.Abs(a.CPUSeconds/b.CPUSeconds-1) > 5e-3 {
			t.Errorf("seed %d: %v operations in %v, sim has %v in %v", seed, a.Ops, a.CPUSeconds, b.Ops, b.CPUSeconds)
		}
		if math.Abs(a.P99/b.P99-1) > 0.05 || math.Abs(a.Latency/b.Latency-1) > 0.08 {
			t.Errorf("seed %d, load %.2f: latency %v, p99 %v, sim has %v, %v", seed, s.Demand.Rate/most, a.Latency, a.P99, b.Latency, b.P99)
		}
	}
}

// TestParityOfBarriers compares equal threads that wait for each other. Where they sleep,
// package sim solves the memory system once with all running and once with the resulting
// pace. Here pace and cycles agree, so waiting threads add no load.
func TestParityOfBarriers(t *testing.T) {
	for seed := range uint64(40) {
		r := detmath.NewRandom(seed, "barriers")
		c := configOf(shapetest.Shape(t, "two"))
		s := drawSpec(&r, c.Machine, "a")
		s.Work.Barrier, s.Work.Spin = 1000+r.Below(100000), r.Below(2) == 0
		c.Specs = []sim.Spec{s}
		w := world(t, c)
		x, err := sim.NewWorld(c)
		if err != nil {
			t.Fatal(err)
		}
		w.Run(2 * time.Second)
		x.Run(2 * time.Second)
		w.Truth()
		x.Truth()
		w.Run(2 * time.Second)
		x.Run(2 * time.Second)
		a, b := w.Truth()[0], x.Truth()[0]
		if math.Abs(a.Ops/b.Ops-1) > 0.03 || math.Abs(a.CPUSeconds/b.CPUSeconds-1) > 0.03 {
			t.Errorf("seed %d: %v operations in %v, sim has %v in %v", seed, a.Ops, a.CPUSeconds, b.Ops, b.CPUSeconds)
		}
	}
}
