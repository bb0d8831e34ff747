// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/sim"

	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// The applications that other packages name are there, once.
func TestNamed(t *testing.T) {
	want := []string{
		"lu", "sp", "bt", "cg", "mg", "ft", "ua", "ep",
		"mcf", "lbm", "milc", "soplex", "omnetpp", "libquantum", "gobmk", "sjeng", "gamess", "povray",
		"neo4j", "sockshop", "derby", "sunflow", "fft", "sor", "mpegaudio", "stream", "predictor", "router", "feature",
	}
	var got []string
	for _, a := range Apps() {
		got = append(got, a.Name)
		if again, ok := AppNamed(a.Name); !ok || again.Name != a.Name || a.About == "" || a.From == "" {
			t.Errorf("%+v", a)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, ok := AppNamed("tetris"); ok {
		t.Error("found what is not there")
	}
}

// Every application is a workload of any size, on any machine that has the memory.
func TestValid(t *testing.T) {
	all := append(Apps(), Generate(1, 100)...)
	each(t, func(t *testing.T, m machine.Machine, _ memsys.System) {
		for _, a := range all {
			for _, threads := range []int{1, 2, 7, 72} {
				for _, memory := range []unit.Bytes{0, unit.MiB, 4 * unit.GiB} {
					s := a.Spec("x", threads, memory)
					held := s.Memory.Private + s.Memory.Shared
					if s.Threads != threads || s.Name != "x" || held < memory {
						t.Errorf("%s of %d threads and %v: %+v", a.Name, threads, memory, s)
					}
					if memory == 0 && threads > 2 {
						continue // many programs of 1.6 GiB are more than some machines have
					}
					for _, p := range s.Validate(m) {
						if held < 20*unit.GiB {
							t.Errorf("%s of %d threads and %v: %s", a.Name, threads, memory, p)
						}
					}
				}
			}
		}
	})
}

// With more memory an instance has larger regions, or equal ones, and the same rates.
func TestMemory(t *testing.T) {
	for _, a := range Apps() {
		small, large := a.Spec("x", 4, 4*unit.GiB), a.Spec("x", 4, 8*unit.GiB)
		for i, r := range small.Work.Regions {
			l := large.Work.Regions[i]
			if l.Size < r.Size || l.Accesses != r.Accesses || l.Shared != r.Shared {
				t.Errorf("%s: region %d %+v, with more memory %+v", a.Name, i, r, l)
			}
		}
		if small.Memory.Private+small.Memory.Shared != 4*unit.GiB {
			t.Errorf("%s holds %v and %v of 4 GiB", a.Name, small.Memory.Private, small.Memory.Shared)
		}
	}
}

// specsOK reports that a world accepts the specs.
func specsOK(t *testing.T, m machine.Machine, y memsys.System, specs []sim.Spec) {
	t.Helper()
	if _, err := sim.NewWorld(sim.Config{Machine: m, System: y, Specs: specs, Seed: 1}); err != nil {
		t.Error(err)
	}
}
