// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// start is a Monday at noon.
var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func configOf(s machine.Shape, specs ...sim.Spec) sim.Config {
	return sim.Config{
		Machine: s.Machine(), System: memsys.FromShape(s), Linux: linux.DefaultSettings(),
		Specs: specs, Seed: 1, Start: start,
	}
}

func world(t testing.TB, c sim.Config) *World {
	t.Helper()
	w, err := NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// chasing is a closed loop of dependent reads.
func chasing(name string, threads int) sim.Spec {
	return sim.Spec{
		Name: name, Threads: threads,
		Memory: sim.MemorySpec{Private: unit.Bytes(threads) * 8 * unit.MiB},
		Work:   sim.WorkSpec{Cycles: 4, Instructions: 4, Regions: []sim.RegionSpec{{Size: 8 * unit.MiB, Accesses: 1, Parallelism: 1}}},
	}
}

func cpuSet(t testing.TB, s string) set.CPUSet {
	t.Helper()
	c, err := set.ParseCPUs(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParityFirst(t *testing.T) {
	spec := chasing("a", 4)
	spec.Start.CPUs, spec.Start.Pinned = cpuSet(t, "0-3"), true
	c := configOf(shapetest.Shape(t, "two"), spec)
	w := world(t, c)
	c.Step = time.Second
	s, err := sim.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(4 * time.Second)
	s.Run(4 * time.Second)
	a, b := w.Truth()[0], s.Truth()[0]
	if math.Abs(a.Ops/b.Ops-1) > 1e-3 {
		t.Errorf("%v ops, sim has %v", a.Ops, b.Ops)
	}
	t.Logf("%+v\n%+v", a, b)
	t.Logf("%+v", w.Window())
}
