// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine/shapetest"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/threadworld"
	"homenode/internal/unit"
)

// TestLoopOfThreads lets policies that bind act in a world of single threads: two workloads
// whose memory is on the wrong node come home.
func TestLoopOfThreads(t *testing.T) {
	shape := shapetest.Shape(t, "two")
	var specs []sim.Spec
	for _, name := range []string{"a", "b"} {
		specs = append(specs, sim.Spec{
			Name: name, Threads: 2, Approved: true, CPURequest: 2, Memory: sim.MemorySpec{Shared: 64 * unit.MiB},
			Work:  sim.WorkSpec{Cycles: 100, Instructions: 100, Regions: []sim.RegionSpec{{Size: 64 * unit.MiB, Shared: true, Accesses: 4, Parallelism: 1}}},
			Start: sim.StartSpec{Touch: set.FromNodes(0, 1)},
		})
	}
	c := sim.Config{Machine: shape.Machine(), System: memsys.FromShape(shape), Linux: linux.DefaultSettings(), Specs: specs, Seed: 1}
	w, err := threadworld.NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	var world World = w
	p, err := New(Hand, Options{MAO: mao.DefaultConfig(), System: c.System, Specs: specs})
	if err != nil {
		t.Fatal(err)
	}
	l := &Loop{World: world, Machine: c.Machine, Policy: p, Actuate: Actuate(Hand, actuate.DefaultConfig()), Period: time.Second}
	for range 60 {
		l.Round()
	}
	w.Truth()
	l.Round()
	for _, x := range w.Truth() {
		if local := x.Local / (x.Local + x.Remote); !l.Bound(x.Workload) || local < 0.99 {
			t.Errorf("%s: bound %v, %.2f of its reads are local", x.Workload, l.Bound(x.Workload), local)
		}
	}
	if l.Counts.Binds != 2 || l.Counts.Refused != 0 || l.Counts.Moved < float64(60*unit.MiB) {
		t.Errorf("%+v", l.Counts)
	}
}
