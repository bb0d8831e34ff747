// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"homenode/internal/sim/detmath"
)

// worlds are random systems with random loads, each with a new solver.
func worlds(t *testing.T, n int, name string, each func(i int, r *detmath.Random, sys System, loads []Load, got *Result)) {
	t.Helper()
	r := detmath.NewRandom(9, name)
	shapes := []System{shape(t, "two"), shape(t, "four"), shape(t, "far"), shape(t, "smt")}
	_, skylake := DualSkylake()
	shapes = append(shapes, skylake)
	for i := range n {
		sys := shapes[r.Below(len(shapes))]
		loads := randomLoads(&r, &sys, 1+r.Below(8))
		each(i, &r, sys, loads, new(Solver).Solve(&sys, loads))
	}
}

// Controllers serve what loads read and write back; none serves more than it can; an LLC
// holds at most its size; CPUs do what they have time for.
func TestConserved(t *testing.T) {
	worlds(t, 1000, "conserved", func(i int, _ *detmath.Random, sys System, loads []Load, got *Result) {
		lines, held := make([]float64, len(sys.Nodes)), make([]float64, len(sys.Domains))
		for j, l := range got.Loads {
			for m := range lines {
				lines[m] += l.Ops / sys.Hz * (l.DRAM[m] + l.Writebacks[m])
			}
			held[loads[j].Domain] += l.LLC
			if l.CPUs > loads[j].CPUs*(1+1e-9) || l.Ops > loads[j].Ops*(1+1e-9) || math.Abs(l.CPUs-l.Ops*l.Cycles/sys.Hz) > 1e-9*l.CPUs {
				t.Errorf("%d: load %d: %+v of %+v", i, j, l, loads[j])
			}
		}
		for m, want := range lines {
			if math.Abs(got.Nodes[m].Lines-want) > 1e-9*(1+want) {
				t.Errorf("%d: node %d serves %v lines, its loads make %v", i, m, got.Nodes[m].Lines, want)
			}
		}
		for d, bytes := range held {
			if bytes > sys.Domains[d].LLC*(1+2e-5) {
				t.Errorf("%d: LLC %d holds %v of %v bytes", i, d, bytes, sys.Domains[d].LLC)
			}
		}
		for _, q := range slices.Concat(got.Nodes, got.Links) {
			if !(q.Utilisation >= 0 && q.Utilisation <= 1 && q.Wait >= 0 && q.Wait < 1e7) {
				t.Errorf("%d: %+v", i, q)
			}
		}
		if !(got.Residue <= 1e-5) {
			t.Errorf("%d: residue %v after %d rounds", i, got.Residue, got.Rounds)
		}
	})
}

// Slower memory never makes an operation of a lone load shorter.
func TestSlowerMemory(t *testing.T) {
	worlds(t, 500, "slower", func(i int, r *detmath.Random, sys System, loads []Load, _ *Result) {
		loads = loads[:1]
		before := new(Solver).Solve(&sys, loads).Loads[0].Cycles
		slower := sys
		slower.Latency = make([][]float64, len(sys.Latency))
		for c, row := range sys.Latency {
			for _, l := range row {
				slower.Latency[c] = append(slower.Latency[c], l*(1+r.Float()))
			}
		}
		if after := new(Solver).Solve(&slower, loads).Loads[0].Cycles; after < before*(1-5e-5) {
			t.Errorf("%d: %v cycles, with slower memory %v: %+v", i, before, after, loads[0].Work)
		}
	})
}

// A clock twice as fast, with all cycles unchanged, gives twice the operations.
func TestScaled(t *testing.T) {
	worlds(t, 300, "scaled", func(i int, _ *detmath.Random, sys System, loads []Load, got *Result) {
		sys.Hz *= 2
		for j := range loads {
			loads[j].Ops *= 2
		}
		twice := new(Solver).Solve(&sys, loads)
		for j := range loads {
			if math.Abs(twice.Loads[j].Ops/got.Loads[j].Ops/2-1) > 1e-9 {
				t.Errorf("%d: load %d does %v, at twice the clock %v", i, j, got.Loads[j].Ops, twice.Loads[j].Ops)
			}
		}
	})
}

// More CPUs never do less, where they share only servers.
func TestMoreCPUs(t *testing.T) {
	sys := shape(t, "four")
	r := detmath.NewRandom(3, "more")
	for i := range 300 {
		w := randomWork(&r)
		w.Adds = 0
		for k := range w.Regions {
			w.Regions[k].Shared = true // else more threads would each have less of the LLC
		}
		home, before := randomHome(&r, &sys), 0.0
		for cpus := 1.0; cpus <= 16; cpus++ {
			l := Load{CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Work: w, Home: home}
			ops := new(Solver).Solve(&sys, []Load{l}).Loads[0].Ops
			if ops < before*(1-5e-5) {
				t.Errorf("%d: %v CPUs do %v, one fewer did %v", i, cpus, ops, before)
			}
			before = ops
		}
	}
}

// Renumbering the nodes renumbers the result, and changes nothing else.
func TestRenumbered(t *testing.T) {
	worlds(t, 500, "renumbered", func(i int, r *detmath.Random, sys System, loads []Load, got *Result) {
		to := make([]int, len(sys.Nodes)) // old node → new
		for n := range to {
			k := r.Below(n + 1)
			to[n], to[k] = to[k], n
		}
		other, domains := renumbered(sys, to)
		moved := slices.Clone(loads)
		for j := range moved {
			moved[j].Domain = domains[loads[j].Domain]
			moved[j].Home = permuted(loads[j].Home, to)
		}
		after := new(Solver).Solve(&other, moved)
		for j := range loads {
			a, b := got.Loads[j], after.Loads[j]
			if math.Abs(a.Cycles/b.Cycles-1) > 1e-9 || !near(permuted(a.DRAM, to), b.DRAM) {
				t.Errorf("%d: load %d: %+v, with other numbers %+v (rounds %d, %d)", i, j, a, b, got.Rounds, after.Rounds)
			}
		}
	})
}

func near(a, b []float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > 1e-9*(1+math.Abs(a[i])) {
			return false
		}
	}
	return true
}

func permuted[T any](of []T, to []int) []T {
	out := make([]T, len(of))
	for i, v := range of {
		out[to[i]] = v
	}
	return out
}

// renumbered is the system with node i as node to[i], and the new indexes of its domains.
func renumbered(sys System, to []int) (System, []int) {
	other := sys
	other.Nodes = permuted(sys.Nodes, to)
	both := func(of [][]float64) [][]float64 {
		rows := make([][]float64, len(of))
		for i, row := range of {
			rows[i] = permuted(row, to)
		}
		return permuted(rows, to)
	}
	other.Latency, other.Transfer = both(sys.Latency), both(sys.Transfer)
	paths := make([][][]int, len(sys.Path))
	for i, row := range sys.Path {
		paths[i] = permuted(row, to)
	}
	other.Path = permuted(paths, to)
	domains := make([]int, len(sys.Domains))
	for i := range domains {
		domains[i] = len(domains) - 1 - i
	}
	other.Domains = permuted(sys.Domains, domains)
	for i := range other.Domains {
		other.Domains[i].Node = to[other.Domains[i].Node]
	}
	return other, domains
}

// The same calls give the same bits, and the starting point does not matter.
func TestSameBits(t *testing.T) {
	_, sys := DualSkylake()
	var s1, s2 Solver
	r := detmath.NewRandom(2, "bits")
	for range 200 {
		loads := randomLoads(&r, &sys, 12)
		a, b := s1.Solve(&sys, loads), s2.Solve(&sys, loads)
		if !reflect.DeepEqual(a, b) {
			t.Fatal("the same calls gave other bits")
		}
		cold := new(Solver).Solve(&sys, loads)
		for j := range loads {
			if off := math.Abs(a.Loads[j].Cycles/cold.Loads[j].Cycles - 1); off > 1e-4 {
				t.Errorf("warm %v cycles, cold %v", a.Loads[j].Cycles, cold.Loads[j].Cycles)
			}
		}
	}
}

// No operations, no CPUs, no memory.
func TestNothing(t *testing.T) {
	sys := shape(t, "far")
	var s Solver
	if r := s.Solve(&sys, nil); len(r.Loads) != 0 || r.Nodes[0].Lines != 0 {
		t.Errorf("%+v", r)
	}
	w := &Work{Cycles: 10, Regions: []Region{{Bytes: 1 << 24, Accesses: 1, Parallelism: 1}}}
	for _, l := range []Load{
		{}, {Work: w}, {Work: w, CPUs: 1}, {Work: w, CPUs: 1, Threads: 1, Ops: math.Inf(1)}, {Work: &Work{}, CPUs: 2, Ops: math.Inf(1)},
		{Work: w, CPUs: 1, Ops: 1e5, Home: []float64{1, 0, 0}}, {Work: &Work{Adds: 1}, CPUs: 2, Ops: math.Inf(1)},
		{Work: &Work{Adds: 1, Lines: 1e6}, CPUs: 0, Ops: math.Inf(1)}, {Work: &Work{Adds: 1, Lines: 1e6}, CPUs: 1, Ops: 0},
	} {
		r := s.Solve(&sys, []Load{l, l})
		for _, l := range r.Loads {
			for _, v := range append([]float64{l.Cycles, l.Stall, l.Ops, l.CPUs, l.L2Misses, l.Transfers, l.LLC, l.Latency, r.Residue}, l.DRAM...) {
				if !(v >= 0) || math.IsInf(v, 0) {
					t.Errorf("%+v: %+v", l, r)
				}
			}
		}
	}
}
