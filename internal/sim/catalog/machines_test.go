// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

func each(t *testing.T, do func(t *testing.T, m machine.Machine, y memsys.System)) {
	for _, b := range Machines() {
		t.Run(b.Name, func(t *testing.T) {
			m, y := b.Make()
			do(t, m, y)
		})
	}
}

func TestSizes(t *testing.T) {
	type size struct{ nodes, cpus, cores, packages, llcs int }
	want := map[string]size{
		DualSkylake: {2, 112, 56, 2, 2}, DualE5620: {2, 8, 8, 2, 2}, FourNodes: {4, 96, 48, 4, 4},
		Opteron: {8, 64, 64, 4, 8}, Kunpeng: {4, 128, 128, 2, 4}, Torus: {36, 288, 288, 18, 36},
		Epyc1: {2, 256, 128, 2, 16}, Epyc4: {8, 256, 128, 2, 16}, XeonSNC4: {8, 224, 112, 2, 8},
		QuadGold: {4, 128, 64, 4, 4}, DualE5v4: {2, 32, 32, 2, 2},
	}
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		got := size{len(m.Nodes), m.OnlineCPUs().Len(), len(m.Cores), len(m.Packages), len(m.LLCs)}
		if got != want[y.Name] || m.Origin != "fake:"+y.Name {
			t.Errorf("%s of %s: %+v, want %+v", y.Name, m.Origin, got, want[y.Name])
		}
		if y.How == unit.HowEstimated == (y.Name == DualSkylake) || y.From == "" {
			t.Errorf("figures are %v, from %q", y.How, y.From)
		}
	})
	if b, ok := MachineNamed(Torus); !ok || b.Name != Torus {
		t.Error("the torus is not found")
	}
	if _, ok := MachineNamed("abacus"); ok {
		t.Error("found what is not there")
	}
}

// Every CPU is where its groups say, as on a machine that was read.
func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, m machine.Machine, _ memsys.System) {
		var given set.CPUSet
		for _, n := range m.Nodes {
			if given.Overlaps(n.CPUs) {
				t.Errorf("CPUs %v were given twice", given.Intersect(n.CPUs))
			}
			given = given.Union(n.CPUs)
		}
		if !given.Equal(m.OnlineCPUs()) {
			t.Errorf("nodes have CPUs %v of %v", given, m.OnlineCPUs())
		}
		for i, c := range m.CPUs {
			node, _ := m.Node(c.Node.Or(-1))
			for _, group := range []set.CPUSet{
				node.CPUs, m.Packages[c.Package.Or(-1)], m.Cores[c.Core.Or(-1)], m.L2s[c.L2.Or(-1)].CPUs, m.LLCs[c.LLC.Or(-1)].CPUs,
			} {
				if c.ID != i || !group.Has(c.ID) {
					t.Errorf("CPU %+v is not in %v", c, group)
				}
			}
		}
	})
}

// Latency grows with distance and never falls. A way is as long there as back, and back it
// passes the same places.
func TestDistance(t *testing.T) {
	each(t, func(t *testing.T, m machine.Machine, y memsys.System) {
		type pair struct {
			distance int
			latency  float64
		}
		var pairs []pair
		for i := range y.Nodes {
			for j := range y.Nodes {
				d := m.Distance(i, j).Or(-1)
				pairs = append(pairs, pair{d, y.Latency[i][j]})
				there, back := y.Path[i][j], y.Path[j][i]
				if (i == j) != (len(there) == 0) || len(there) != len(back) || d != m.Distance(j, i).Or(-1) {
					t.Errorf("from %d to %d over %v, back over %v", i, j, there, back)
				}
				if i != j && !(y.Transfer[i][j] > y.Transfer[i][i]) {
					t.Errorf("a line of another core comes from %d to %d in %v cycles", j, i, y.Transfer[i][j])
				}
			}
		}
		slices.SortFunc(pairs, func(a, b pair) int { return a.distance - b.distance })
		for k := 1; k < len(pairs); k++ {
			a, b := pairs[k-1], pairs[k]
			if a.distance < b.distance && !(a.latency < b.latency) {
				t.Errorf("%v cycles at %d, %v at %d", a.latency, a.distance, b.latency, b.distance)
			}
			if y.How == unit.HowEstimated && a.distance == b.distance && math.Abs(a.latency-b.latency) > 1e-9*a.latency {
				t.Errorf("%v and %v cycles at %d", a.latency, b.latency, a.distance)
			}
		}
		for k := 0; k < len(y.Links); k += 2 {
			if y.Links[k].Cycles != y.Links[k+1].Cycles || !(y.Links[k].Cycles > 0) {
				t.Errorf("link %d: %v one way, %v the other", k, y.Links[k], y.Links[k+1])
			}
		}
	})
}

// Loads on the machines settle, and controllers serve what loads read.
func TestSolves(t *testing.T) {
	each(t, func(t *testing.T, _ machine.Machine, y memsys.System) {
		n, most := 100, 0
		if len(y.Nodes) > 8 {
			n = 10
		}
		for seed := range uint64(n) {
			r := detmath.NewRandom(seed, y.Name)
			loads := randomLoads(&r, &y)
			got := new(memsys.Solver).Solve(&y, loads)
			most = max(most, got.Rounds)
			if !(got.Residue <= 1e-5) {
				t.Errorf("%d: residue %v after %d rounds", seed, got.Residue, got.Rounds)
			}
			lines := make([]float64, len(y.Nodes))
			for _, l := range got.Loads {
				for m := range lines {
					lines[m] += l.Ops / y.Hz * (l.DRAM[m] + l.Writebacks[m])
				}
			}
			for m, q := range got.Nodes {
				if math.Abs(q.Lines-lines[m]) > 1e-9*(1+lines[m]) || !(q.Utilisation <= 1) {
					t.Errorf("%d: node %d: %+v, loads make %v lines", seed, m, q, lines[m])
				}
			}
			for k, q := range got.Links {
				if !(q.Utilisation >= 0 && q.Utilisation <= 1 && q.Wait >= 0 && q.Wait < 1e7) {
					t.Errorf("%d: link %d: %+v", seed, k, q)
				}
			}
		}
		t.Logf("%d rounds at most", most)
	})
}

// randomLoads are closed loops on most domains, with memory on some nodes.
func randomLoads(r *detmath.Random, y *memsys.System) (loads []memsys.Load) {
	for d := range y.Domains {
		if r.Float() < 0.2 {
			continue
		}
		home, sum := make([]float64, len(y.Nodes)), 0.0
		for range 1 + r.Below(3) {
			share := r.Exponential()
			home[r.Below(len(home))] += share
			sum += share
		}
		for m := range home {
			home[m] /= sum
		}
		cpus := math.Ceil(r.Float() * y.Domains[d].CPUs)
		loads = append(loads, memsys.Load{
			Workload: d, Domain: d, CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Slow: 1, Home: home,
			Work: &memsys.Work{Cycles: 10 + 200*r.Float(), Instructions: 10 + 200*r.Float(), Regions: []memsys.Region{{
				Bytes: 65536 * detmath.Exp(8*r.Float()), Accesses: 2 * r.Float(), Parallelism: 1 + math.Floor(6*r.Float()),
				Stream: r.Float() < 0.4, Writes: math.Max(0, r.Float()-0.5),
			}}},
		})
	}
	return loads
}

// Farther memory makes no load faster: a chase over memory of each node.
func TestFarIsSlow(t *testing.T) {
	each(t, func(t *testing.T, _ machine.Machine, y memsys.System) {
		w := memsys.Work{Cycles: 10, Instructions: 10, Regions: []memsys.Region{{Bytes: 1 << 30, Accesses: 1, Parallelism: 1}}}
		for m := range y.Nodes {
			home := make([]float64, len(y.Nodes))
			home[m] = 1
			got := new(memsys.Solver).Solve(&y, []memsys.Load{{CPUs: 1, Threads: 1, Ops: math.Inf(1), Slow: 1, Home: home, Work: &w}})
			if l := got.Loads[0].Latency; l < y.Latency[0][m]*0.999 || l > y.Latency[0][m]*1.5 {
				t.Errorf("memory of node %d in %v cycles, idle %v", m, l, y.Latency[0][m])
			}
		}
	})
}

// A built-in machine agrees with its recording, where there is one.
func TestAsRecorded(t *testing.T) {
	for name, archive := range map[string]string{
		Opteron: "64amd64-4p2n4ca2co-opteron6272.tar.bz2", Kunpeng: "128arm-2pa2n8cluster4co.tar.bz2",
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := MachineNamed(name)
			m, _ := b.Make()
			want, err := machine.ParseSysfs(machinetest.Unpack(t, filepath.Join(machinetest.Dir(t), archive)), "recorded:"+archive)
			if err != nil {
				t.Fatal(err)
			}
			for what, pair := range map[string][2]any{
				"distances": {m.Distances, want.Distances}, "CPUs": {m.CPUs, want.CPUs}, "packages": {m.Packages, want.Packages},
				"cores": {m.Cores, want.Cores}, "L2s": {m.L2s, want.L2s}, "LLCs": {m.LLCs, want.LLCs},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%s: %v, recorded %v", what, pair[0], pair[1])
				}
			}
			for i, n := range want.Nodes {
				ours := m.Nodes[i]
				if share := float64(n.Memory.Or(0)) / float64(ours.Memory.Or(0)); ours.CPUs != n.CPUs || share < 0.95 || share > 1 {
					t.Errorf("node %+v, recorded %+v", ours, n)
				}
			}
		})
	}
}

// What is published of an EPYC with four nodes a package, ns from node 0 (latency facts), and
// the order reported of its transfers between cores, within 35 % without a profile.
func TestEpycAsPublished(t *testing.T) {
	_, y := epyc4()
	ns := func(cycles float64) float64 { return cycles / y.Hz * 1e9 }
	for n, want := range []float64{105.6, 113.1, 118.6, 117.7} {
		if is := ns(y.Latency[0][n]); math.Abs(is/want-1) > 0.05 {
			t.Errorf("memory of node %d in %.1f ns, published %.1f", n, is, want)
		}
	}
	for _, y := range []memsys.System{second(epyc1()), second(epyc4())} {
		last := len(y.Nodes) - 1
		for what, pair := range map[string][2]float64{
			"below an LLC": {y.InLLC[0], 25}, "between LLCs of a node": {y.Transfer[0][0], 100}, "between packages": {y.Transfer[0][last], 200},
		} {
			if is := pair[0] / y.Hz * 1e9; math.Abs(is/pair[1]-1) > 0.35 {
				t.Errorf("%s: a line of another core %s in %.0f ns, reported %.0f", y.Name, what, is, pair[1])
			}
		}
	}
}

func second(_ machine.Machine, y memsys.System) memsys.System { return y }

// Servers are one or two hops apart, and lines between them pass both cards.
func TestTorus(t *testing.T) {
	_, y := torus()
	seen := map[int]int{}
	for a := range servers {
		for b := range servers {
			seen[hops(a, b)]++
			way := y.Path[a*serverNodes][b*serverNodes]
			if want := hops(a, b) + 2; a != b && len(way) != want {
				t.Errorf("from server %d to %d: %v, want %d links", b, a, way, want)
			}
		}
	}
	if !reflect.DeepEqual(seen, map[int]int{0: 6, 1: 18, 2: 12}) {
		t.Errorf("hops %v", seen)
	}
	if ns := y.Latency[0][serverNodes] / y.Hz * 1e9; math.Abs(ns-800) > 1e-6 {
		t.Errorf("%v ns at 160", ns)
	}
}

func BenchmarkTorus(b *testing.B) {
	_, y := torus()
	r := detmath.NewRandom(1, "bench")
	loads := randomLoads(&r, &y)
	var s memsys.Solver
	for b.Loop() {
		s.Solve(&y, loads)
	}
}
