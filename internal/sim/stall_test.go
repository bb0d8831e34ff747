// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// large are closed loops whose memory takes many steps to move.
func large(r *rand.Rand) (specs []Spec) {
	for i := range 1 + r.IntN(3) {
		s := Spec{Name: fmt.Sprint("large-", i), Threads: 1 + r.IntN(30)}
		region := RegionSpec{Size: unit.Bytes(math.Exp(10*r.Float64()) * 65536), Accesses: 500 * r.Float64(), Parallelism: 1 + 3*r.Float64(), Stream: r.IntN(2) == 0, Writes: r.Float64()}
		s.Memory.Private = 40 * unit.GiB
		if r.IntN(2) == 0 {
			region.Shared = true
			s.Memory.Shared, s.Memory.Private = 40*unit.GiB, 0
		}
		s.Work = WorkSpec{Cycles: 10000, Instructions: 10000, Regions: []RegionSpec{region}}
		specs = append(specs, s)
	}
	return specs
}

// Workloads that stand still for whole steps inside a write to cpuset.mems do not turn any
// figure into NaN or infinity.
func TestWholeStepsOfStall(t *testing.T) {
	m, y := memsys.DualSkylake()
	stalled := 0.0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := world(t, Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: large(r), Seed: seed, Step: time.Second})
		for range 12 {
			w.Run(3 * time.Second)
			for i := range w.Config.Specs {
				if r.IntN(2) == 0 {
					w.Apply(steps(action.Step{Workload: "/" + w.Config.Specs[i].Name, Kind: action.SetMems, Nodes: set.FromNodes(r.IntN(2))}))
				}
			}
			w.Run(3 * time.Second)
			for _, x := range w.Truth() {
				stalled += x.Stalled
				if sum := x.Ops + x.CPUSeconds + x.Cycles; math.IsNaN(sum) || math.IsInf(sum, 0) {
					t.Fatalf("seed %d: %+v", seed, x)
				}
			}
		}
	}
	if stalled < 100 {
		t.Errorf("stalled for %v s: this tests nothing", stalled)
	}
}
