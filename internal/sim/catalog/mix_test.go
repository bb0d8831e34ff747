// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/sim"

	"homenode/internal/sim/memsys"
)

// Every mix of every seed is a valid world on every machine, is reproducible, and has the
// threads that its name promises.
func TestMixes(t *testing.T) {
	var names []string
	for _, x := range Mixes() {
		names = append(names, x.Name)
	}
	if want := []string{"vms", "parallel", "multiprogrammed", "services", "insensitive", "mixed-classes"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v: names stay", names, want)
	}
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		cpus := m.OnlineCPUs().Len()
		for _, x := range Mixes() {
			for seed := range uint64(machinetest.Seeds(2, 8)) {
				specs := x.Make(m, y, seed)
				if again := x.Make(m, y, seed); !reflect.DeepEqual(specs, again) {
					t.Errorf("%s %d: other specs the second time", x.Name, seed)
				}
				specsOK(t, m, y, specs)
				least, most := bounds(x.Name, cpus)
				if n := threadsOf(specs); n < least || n > most {
					t.Errorf("%s %d: %d threads, want %d to %d on %d CPUs", x.Name, seed, n, least, most, cpus)
				}
				first := specs[0].Arrive
				for _, s := range specs {
					first = min(first, s.Arrive)
					if s.Arrive > 5*time.Minute || s.Service == "" {
						t.Errorf("%s %d: %+v", x.Name, seed, s)
					}
				}
				if first > gap {
					t.Errorf("%s %d: none before %v", x.Name, seed, first)
				}
			}
			if reflect.DeepEqual(x.Make(m, y, 1), x.Make(m, y, 2)) {
				t.Errorf("%s: two seeds, one mix", x.Name)
			}
		}
	})
}

func bounds(mix string, cpus int) (least, most int) {
	switch mix {
	case "vms", "mixed-classes":
		return cpus * 7 / 10, cpus * 8 / 9
	default:
		return cpus, cpus
	}
}

func threadsOf(specs []sim.Spec) (n int) {
	for _, s := range specs {
		n += s.Threads
	}
	return n
}

// On Lakew's machine the VMs are Lakew's.
func TestLakewsVMs(t *testing.T) {
	b, _ := MachineNamed(Torus)
	m, y := b.Make()
	count, apps := map[string]int{}, map[string]bool{}
	for _, s := range VMMix(m, y, 1) {
		size, _, _ := strings.Cut(s.Name, "-")
		count[size]++
		apps[s.Service] = true
		want := map[string]int{"small": 4, "medium": 8, "large": 16, "huge": 72}[size]
		gib := float64(s.Memory.Private+s.Memory.Shared) / (1 << 30)
		if s.Threads != want || math.Abs(gib/float64(want)-2) > 0.15 {
			t.Errorf("%s has %d threads and %.1f GiB", s.Name, s.Threads, gib)
		}
	}
	if !reflect.DeepEqual(count, map[string]int{"small": 12, "medium": 4, "large": 2, "huge": 2}) || len(apps) != len(lakew) {
		t.Errorf("%v, %v", count, apps)
	}
}

// No drawn program of a mix was used to fit (seeds 1 to 30), choose (101 to 140) or judge
// (201 to 240) the inference of classes: not even its figures were.
func TestDrawnMixIsNotTrainedOn(t *testing.T) {
	bare := func(s sim.Spec) string { return fmt.Sprintf("%+v", s.Work) }
	seen := map[string]bool{}
	for _, from := range []uint64{1, 101, 201} {
		for seed := range uint64(40) {
			for _, a := range Generate(from+seed, 256) {
				seen[bare(a.Spec("x", 1, 0))] = true
				seen[a.Name] = true
			}
		}
	}
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		for seed := range uint64(40) {
			for _, s := range DrawnMix(m, y, seed) {
				if s.Service == "" || seen[s.Service] || seen[bare(s)] {
					t.Errorf("seed %d: %s (%s) is one of Generate's", seed, s.Name, s.Service)
				}
			}
		}
	})
}

// Services run at the load that they are made for, where no thread is far from its memory.
func TestServicesLoad(t *testing.T) {
	b, _ := MachineNamed(DualSkylake)
	m, y := b.Make()
	w, err := sim.NewWorld(sim.Config{Machine: m, System: y, Specs: ServiceMix(m, y, 1), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.Run(5 * time.Minute)
	w.Window()
	w.Run(time.Minute)
	busy, cpus := 0.0, float64(m.OnlineCPUs().Len())
	for _, n := range w.Window().Nodes {
		b, _ := n.CPUBusy.Get()
		busy += b
	}
	t.Logf("%.0f %% of the CPU time", 100*busy/cpus)
	if share := busy / cpus; share < 0.4 || share > 0.85 {
		t.Errorf("%.0f %% of the CPU time", 100*share)
	}
}

// A world of each mix runs: every workload does something.
func TestMixesRun(t *testing.T) {
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		lasts := 30 * time.Second
		if len(m.Nodes) > 8 {
			lasts = time.Second // on 36 nodes, with 288 programs spread over all of them, a step takes half a second
		}
		for _, x := range Mixes() {
			w, err := sim.NewWorld(sim.Config{Machine: m, System: y, Specs: x.Make(m, y, 1), Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			w.Run(lasts)
			for _, wl := range w.Truth() {
				if !(wl.Ops > 0) {
					t.Errorf("%s: %s did nothing", x.Name, wl.Workload)
				}
			}
		}
	})
}

// Approved are applications that remote memory slows down, and none that only compute.
func TestApproved(t *testing.T) {
	b, _ := MachineNamed(FourNodes)
	m, y := b.Make()
	for _, x := range Mixes() {
		some := 0
		for _, s := range x.Make(m, y, 1) {
			if s.Approved {
				some++
			}
		}
		if (some == 0) != (x.Name == "insensitive") {
			t.Errorf("%s: %d workloads are approved", x.Name, some)
		}
	}
}
