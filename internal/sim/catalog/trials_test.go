// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine/machinetest"
	"homenode/internal/machine/shapetest"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
)

// A seed's mix never changes: rows of the lab are of these.
func TestTrialsOfASeedStay(t *testing.T) {
	m := DrawTrials(1)
	var lines []string
	for _, s := range m.Services {
		lines = append(lines, s.Load())
	}
	for _, l := range m.Beside {
		lines = append(lines, l.Name+" "+l.Load())
	}
	want := []string{
		"server --workers 3 --ws 4MiB --extra 16MiB --closed --think-us 500 --short-share 1 --short-us 300:400 --loads-per-unit 16 --alu-per-unit 100",
		"server --workers 6 --ws 8MiB --extra 4MiB --closed --think-us 500 --short-share 1 --short-us 300:400 --loads-per-unit 8 --alu-per-unit 400",
		"server --workers 3 --ws 2MiB --extra 0MiB --closed --think-us 2000 --short-share 1 --short-us 300:400 --loads-per-unit 32 --alu-per-unit 0",
		"b0 stream --threads 1 --ws 16MiB",
		"b1 spin --threads 2",
	}
	if !reflect.DeepEqual(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// Every mix is a valid world on the lab's shape, and no service gets more CPUs than its limit.
func TestTrialsAreWorlds(t *testing.T) {
	shape := shapetest.Shape(t, "four").ForWorkloads()
	system := memsys.FromShape(shape)
	kinds := map[string]int{}
	for seed := range uint64(machinetest.Seeds(40, 400)) {
		m := DrawTrials(seed)
		specs := m.Specs(system.Hz, float64(shape.Model.TimeFactor), float64(shape.Model.StreamParallelism))
		w, err := sim.NewWorld(sim.Config{Machine: shape.Machine(), System: system, Specs: specs, Seed: seed, Start: time.Unix(0, 0), Step: time.Second})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i, s := range m.Services {
			kinds[s.Kind]++
			if most := specs[i].CPULimit; most > float64(s.Workers) || (s.Limit > 0 && most > s.Limit) || !(most > 0) {
				t.Errorf("seed %d, %s: a limit of %v CPUs for %d workers, limit %v", seed, s.Name, most, s.Workers, s.Limit)
			}
		}
		w.Run(2 * time.Second)
		for _, got := range w.Truth() {
			if !(got.Ops > 0) {
				t.Errorf("seed %d: %s did nothing", seed, got.Workload)
			}
		}
	}
	if len(kinds) != len(TrialKinds) {
		t.Errorf("kinds: %v", kinds)
	}
}
