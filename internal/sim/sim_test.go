// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// start is a Monday at noon.
var start = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// testConfig is a world on shape two: 2 nodes of 2 CPUs and 768 MiB.
func testConfig(t testing.TB, specs ...Spec) Config {
	return configOf(shapetest.Shape(t, "two"), specs...)
}

func configOf(s machine.Shape, specs ...Spec) Config {
	return Config{
		Machine: s.Machine(), System: memsys.FromShape(s), Linux: linux.DefaultSettings(),
		Specs: specs, Seed: 1, Start: start, Step: time.Second,
	}
}

func world(t testing.TB, c Config) *World {
	t.Helper()
	w, err := NewWorld(c)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// poolsOf is the population of a world of amounts.
func poolsOf(w *World) *amounts { return w.population.(*amounts) }

// chasing is a closed loop of dependent reads.
func chasing(name string, threads int) Spec {
	return Spec{
		Name: name, Threads: threads,
		Memory: MemorySpec{Private: unit.Bytes(threads) * 32 * unit.MiB},
		Work:   WorkSpec{Cycles: 4, Instructions: 4, Regions: []RegionSpec{{Size: 32 * unit.MiB, Accesses: 1, Parallelism: 1}}},
	}
}

// serving is a service with requests.
func serving(name string, threads int, rate float64) Spec {
	return Spec{
		Name: name, Threads: threads,
		Memory: MemorySpec{Private: 64 * unit.MiB, Shared: 64 * unit.MiB, Files: 8 * unit.MiB, Cache: 8 * unit.MiB},
		Work: WorkSpec{Cycles: 20000, Instructions: 30000, Regions: []RegionSpec{
			{Size: 8 * unit.MiB, Accesses: 100, Parallelism: 2},
			{Size: 32 * unit.MiB, Shared: true, Accesses: 50, Parallelism: 2},
		}},
		Demand: DemandSpec{Rate: rate, Wakes: -1},
	}
}
