// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"math"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/threadworld"
)

// TestParityOfThreads runs the lab's scenarios in the world of single threads: it gives the
// results of package sim, which TestParity compares with the lab.
func TestParityOfThreads(t *testing.T) {
	shapes, f, compared := shapesOf(t), fitOf(t), 0
	for _, s := range Scenarios() {
		shape := shapes[s.Shape]
		var specs []sim.Spec
		for _, l := range s.Loads {
			spec, err := SpecOf(l, f, float64(shape.Model.StreamParallelism))
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, spec)
		}
		want, err := Simulate(shape, s, f)
		if err != nil {
			t.Fatal(err)
		}
		w, err := threadworld.NewWorld(sim.Config{Machine: shape.Machine(), System: memsys.FromShape(shape), Specs: specs, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		w.Run(settle)
		w.Truth()
		w.Run(measure)
		got, err := inOrder(s, w.Truth())
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			compared++
			for _, x := range [][2]float64{{got[i].Cycles, want[i].Cycles}, {got[i].OpsPerSecond, want[i].OpsPerSecond}, {got[i].LocalRatio, want[i].LocalRatio}, {got[i].DRAM, want[i].DRAM}} {
				if math.Abs(x[0]-x[1]) > 2e-3*max(x[0], x[1], 1e-3) {
					t.Errorf("%s, %s: %+v, sim has %+v", s.Name, s.Loads[i].Name, got[i], want[i])
					break
				}
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d loads compared", compared)
	}
	t.Logf("%d loads compared", compared)
}
