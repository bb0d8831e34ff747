// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"

	"homenode/internal/sim/memsys"
	"homenode/internal/sim/threadworld"
	"homenode/internal/unit"
)

// guess is the policy's class of one application, and its true class.
type guess struct {
	truth catalog.Finding
	says  vmmap.Verdict
}

// How the applications of a company are spread over caches.
const (
	halves   = "a half of a cache each" // as the constants were fitted
	quarters = "a quarter of a cache each"
	across   = "halves of two caches each"
	unbound  = "as large as halves, wherever Linux puts them"
)

// seats are CPUs for single applications: one thread per core.
func seats(m machine.Machine, how string) (all []set.CPUSet) {
	var before []int
	for k, llc := range m.LLCs {
		var first []int // first CPU of each core
		for _, core := range m.Cores {
			if id, ok := core.Intersect(llc.CPUs).First(); ok {
				first = append(first, id)
			}
		}
		half, quarter := len(first)/2, len(first)/4
		switch {
		case how == quarters:
			for q := range 4 {
				all = append(all, set.FromCPUs(first[q*quarter:(q+1)*quarter]...))
			}
		case how != across:
			all = append(all, set.FromCPUs(first[:half]...), set.FromCPUs(first[half:2*half]...))
		case k%2 == 1:
			n := len(before) / 2
			all = append(all, set.FromCPUs(before[:n]...).With(first[:half]...), set.FromCPUs(before[n:]...).With(first[half:]...))
		}
		before = first
	}
	return all
}

// company puts drawn applications on seats, with neighbours or alone; the memory of some is
// on another node.
func company(m machine.Machine, y *memsys.System, seed uint64, how string) (specs []sim.Spec, truth []catalog.Finding) {
	r := detmath.NewRandom(seed, "company")
	places := seats(m, how)
	drawn := catalog.Generate(seed, len(places))
	for k, cpus := range places {
		away, where, there := r.Float() < 1.0/3, r.Below(len(m.Nodes)), r.Float() < 0.8
		if !there {
			continue
		}
		a := drawn[k]
		s := a.Spec(fmt.Sprintf("v%03d", len(specs)), cpus.Len(), 0)
		if how != unbound {
			first, _ := cpus.First()
			node, _ := m.NodeOf(first)
			s.Start.CPUs = cpus
			if s.Start.Touch = set.FromNodes(node); away {
				s.Start.Touch = set.FromNodes(m.Nodes[where].ID)
			}
		}
		specs, truth = append(specs, s), append(truth, catalog.Truth(a, m, y))
	}
	return specs, truth
}

// guesses runs a world of single threads for some windows of a second, and infers classes
// from them twice: from all that is counted, and without the occupancy of workloads.
func guesses(t *testing.T, name, how string, seed uint64, windows int) (full, hidden []guess) {
	t.Helper()
	b, _ := catalog.MachineNamed(name)
	m, y := b.Make()
	specs, truth := company(m, &y, seed, how)
	w, err := threadworld.NewWorld(sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: specs, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	var all, less vmmap.State
	for range windows {
		w.Run(time.Second)
		now := w.Window()
		all, _, _ = vmmap.Step(m, vmmap.DefaultConfig(), all, now)
		now.Workloads = slices.Clone(now.Workloads)
		for i := range now.Workloads {
			now.Workloads[i].LLC = unit.Value[unit.Bytes]{}
		}
		less, _, _ = vmmap.Step(m, vmmap.DefaultConfig(), less, now)
	}
	for i, s := range specs {
		v, _ := all.Verdict("/" + s.Name)
		full = append(full, guess{truth[i], v})
		v, _ = less.Verdict("/" + s.Name)
		hidden = append(hidden, guess{truth[i], v})
	}
	return full, hidden
}

// Classes of drawn applications are inferred from windows of single threads, beside random
// neighbours, some with remote memory. Neighbours stay, so nearly nothing is seen both with
// little and with much of a cache: a rabbit stays unknown, or, where it never has cache, looks
// like a devil. The law was fitted on real programs (vmmap.Solo), and on nothing here: of the
// classes that are told, three quarters must be right, and half must be told, with and without
// counted occupancy (decision 0056).
func TestClassesAreInferred(t *testing.T) {
	const from, seeds, windows = 201, 40, 6
	for _, c := range []struct {
		how                    string
		right, told, sensitive float64 // right of the classes told, told of all, sensitivities right
	}{{halves, 0.80, 0.5, 0.85}, {quarters, 0.75, 0.5, 0.75}, {across, 0.80, 0.5, 0.85}, {unbound, 0.70, 0.5, 0.75}} {
		for _, name := range []string{catalog.Opteron, catalog.FourNodes, catalog.DualE5620, catalog.Kunpeng} {
			t.Run(c.how+"/"+name, func(t *testing.T) {
				var all, less []guess
				for seed := range uint64(seeds) {
					full, hidden := guesses(t, name, c.how, from+seed, windows)
					all, less = append(all, full...), append(less, hidden...)
				}
				for how, guesses := range map[string][]guess{"counted": all, "hidden": less} {
					right, told, sensitive := confusion(t, guesses)
					if len(guesses) < 50 || right < c.right || told < c.told || sensitive < c.sensitive {
						t.Errorf("occupancy %s: of %d %.3f are told, %.3f of these and %.3f of sensitivities are right, want %+v", how, len(guesses), told, right, sensitive, c)
					}
				}
			})
		}
	}
}

// confusion logs the table. It returns what is right of the classes told, told of all, and
// right of the sensitivities.
func confusion(t *testing.T, all []guess) (right, told, sensitive float64) {
	t.Helper()
	kinds := []vmmap.Class{vmmap.Sheep, vmmap.Rabbit, vmmap.Devil, vmmap.Unknown}
	count := map[[2]vmmap.Class]int{}
	for _, g := range all {
		count[[2]vmmap.Class{g.truth.Class, g.says.Class}]++
		if g.says.Class != vmmap.Unknown {
			told++
		}
		if g.truth.Class == g.says.Class {
			right++
		}
		if g.truth.Sensitive == g.says.Sensitive {
			sensitive++
		}
	}
	for _, truth := range kinds[:3] {
		line := fmt.Sprintf("%-7s is taken for", truth)
		for _, says := range kinds {
			line += fmt.Sprintf(" %s %d", named(says), count[[2]vmmap.Class{truth, says}])
		}
		t.Log(line)
	}
	n := float64(len(all))
	t.Logf("%.3f of %d told, %.3f of these right, sensitivity %.3f", told/n, len(all), right/told, sensitive/n)
	return right / told, told / n, sensitive / n
}

func named(c vmmap.Class) string {
	if c == vmmap.Unknown {
		return "unknown"
	}
	return string(c)
}

// spinners runs a mix under Linux alone. It counts the windows in which the policy does not
// judge by IPC, for workloads whose threads spin at barriers and for others.
func spinners(t *testing.T, name, mix string, windows int) (none, all map[bool]int) {
	t.Helper()
	b, _ := catalog.MachineNamed(name)
	m, y := b.Make()
	x := catalog.Mixes()[slices.IndexFunc(catalog.Mixes(), func(x catalog.Mix) bool { return x.Name == mix })]
	specs := x.Make(m, y, 1)
	spin := map[string]bool{}
	for _, s := range specs {
		spin["/"+s.Name] = s.Work.Spin && s.Threads > 1
	}
	w, err := threadworld.NewWorld(sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: specs, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w.Run(30 * time.Second)
	w.Window()
	var st vmmap.State
	none, all = map[bool]int{}, map[bool]int{}
	for range windows {
		w.Run(time.Second)
		var reasons []action.Reason
		st, _, reasons = vmmap.Step(m, vmmap.DefaultConfig(), st, w.Window())
		for _, why := range reasons {
			k := slices.IndexFunc(why.Numbers, func(n action.Number) bool { return n.Name == string(vmmap.IPC) })
			if all[spin[why.Workload]]++; !why.Numbers[k].Value.Known() {
				none[spin[why.Workload]]++
			}
		}
	}
	return none, all
}

// Programs whose threads wait for each other are not judged by their instructions; others
// are, except in their first windows.
func TestSpinnersAreSeen(t *testing.T) {
	for _, name := range []string{catalog.Opteron, catalog.Kunpeng} {
		for _, x := range catalog.Mixes() {
			none, all := spinners(t, name, x.Name, 20)
			t.Logf("%s, %s: no verdict in %d of %d windows of spinning programs, %d of %d of others", name, x.Name, none[true], all[true], none[false], all[false])
			if x.Name == "parallel" && (all[true] < 40 || none[true]*4 < all[true]*3) || none[false]*20 > all[false] {
				t.Errorf("%s, %s: want three quarters of the first in the parallel mix, and a twentieth of the others at most", name, x.Name)
			}
		}
	}
}

// A Step ends in time on 128 CPUs with a program on each: its allocations grow with the
// programs, not with their square. It takes about a millisecond.
func TestStepEndsInTime(t *testing.T) {
	b, _ := catalog.MachineNamed(catalog.Kunpeng)
	m, y := b.Make()
	w, err := threadworld.NewWorld(sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: catalog.SingleMix(m, y, 1), Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	var st vmmap.State
	for range 6 {
		w.Run(time.Second)
		seen, next := w.Window(), vmmap.State{}
		allocs := testing.AllocsPerRun(1, func() { next, _, _ = vmmap.Step(m, vmmap.DefaultConfig(), st, seen) })
		if st = next; allocs > 100*float64(len(seen.Workloads)) { // a third of that is usual
			t.Errorf("%d programs take %v allocations, want 100 each at most", len(seen.Workloads), allocs)
		}
	}
}
