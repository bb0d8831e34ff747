// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// fake is a machine of nodes with cores of smt threads each, sharing an L2.
func fake(distances [][]int, cores []int, smt int) machine.Machine {
	m := machine.Machine{Origin: "fake:placement"}
	cpu := 0
	for n, c := range cores {
		var ids []int
		for range c {
			var core []int
			for range smt {
				m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Node: unit.Some(n), Online: true})
				ids, core = append(ids, cpu), append(core, cpu)
				cpu++
			}
			m.Cores = append(m.Cores, set.FromCPUs(core...))
			m.L2s = append(m.L2s, machine.Cache{Level: 2, CPUs: set.FromCPUs(core...)})
		}
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: set.FromCPUs(ids...)})
		m.Nodes = append(m.Nodes, machine.Node{ID: n, CPUs: set.FromCPUs(ids...)})
		row := make([]unit.Opt[int], len(cores))
		for j := range row {
			row[j] = unit.Some(distances[n][j])
		}
		m.Distances = append(m.Distances, row)
	}
	return m
}

// apart is a matrix of distances by a function of two nodes.
func apart(n int, of func(i, j int) int) [][]int {
	d := make([][]int, n)
	for i := range d {
		d[i] = make([]int, n)
		for j := range d[i] {
			d[i][j] = 10
			if i != j {
				d[i][j] = of(i, j)
			}
		}
	}
	return d
}

func equally(n, v int) []int { return slices.Repeat([]int{v}, n) }

func flat(int, int) int { return 21 }

func opteron(t *testing.T) machine.Machine {
	t.Helper()
	m, err := machine.ParseSysfs(machinetest.Unpack(t, machinetest.Dir(t)+"/64amd64-4p2n4ca2co-opteron6272.tar.bz2"), "recorded:opteron")
	if errors.Is(err, machine.ErrNoCPU) {
		t.Fatal(err)
	}
	return m
}

func important(t *testing.T, m machine.Machine, o Options) List {
	t.Helper()
	l, err := Important(m, o)
	if err != nil {
		t.Fatal(err)
	}
	if l.Cut != 0 {
		t.Errorf("%d sets of nodes were cut", l.Cut)
	}
	return l
}

// scores are a list's, one placement each: "l2=12 node=1 interconnect=0".
func scores(l List) (all []string) {
	for _, p := range l.Placements {
		var parts []string
		for _, s := range p.Scores {
			parts = append(parts, fmt.Sprintf("%s=%d", s.Concern, s.Value))
		}
		all = append(all, strings.Join(parts, " "))
	}
	return all
}

// The paper's Intel machine: four E7-4830 v3 (12 cores of two threads), 24 vCPUs: 1 node
// with shared L2, and 2, 3 and 4 nodes with and without.
func TestPaperIntel(t *testing.T) {
	l := important(t, fake(apart(4, flat), equally(4, 12), 2), Options{VCPUs: 24})
	want := []string{
		"l2=12 node=1 interconnect=0",
		"l2=24 node=2 interconnect=1", "l2=12 node=2 interconnect=1",
		"l2=24 node=3 interconnect=3", "l2=12 node=3 interconnect=3",
		"l2=24 node=4 interconnect=6", "l2=12 node=4 interconnect=6",
	}
	if got := scores(l); !slices.Equal(got, want) {
		t.Errorf("got %d:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// The paper's AMD machine with 16 vCPUs: with the number of direct links by its SLIT
// there are 9 (facts/papers.md §4).
func TestPaperOpteron(t *testing.T) {
	l := important(t, opteron(t), Options{VCPUs: 16})
	if len(l.Placements) != 9 {
		t.Errorf("got %d:\n%s", len(l.Placements), strings.Join(scores(l), "\n"))
	}
	bySize := map[int]int{}
	for _, p := range l.Placements {
		bySize[p.Nodes.Len()]++
	}
	if bySize[2] != 1 || bySize[4] != 6 || bySize[8] != 2 {
		t.Errorf("by number of nodes: %v, want 1, 6 and 2", bySize)
	}
}

// The paper's relations between node sets, with bandwidths that have them: {2,3,4,5} is
// the best set of four, so that its complement stays, and {0,2,4,6} with {1,3,5,7} beats
// {0,1,4,5} with {2,3,6,7}.
func TestPaperBandwidths(t *testing.T) {
	text := `nodes: [0, 1, 2, 3, 4, 5, 6, 7]
mb_s:
`
	fast := map[[2]int]float64{{2, 3}: 6000, {2, 4}: 6000, {2, 5}: 3000, {3, 4}: 3000, {3, 5}: 6000, {4, 5}: 6000, {0, 2}: 4000, {0, 4}: 4000, {0, 6}: 4000, {2, 6}: 4000, {4, 6}: 4000, {1, 3}: 4000, {1, 5}: 4000, {1, 7}: 4000, {3, 7}: 4000, {5, 7}: 4000, {0, 1}: 4500, {6, 7}: 4500}
	for i := range 8 {
		row := []string{}
		for j := range 8 {
			v := fast[[2]int{min(i, j), max(i, j)}]
			if v == 0 {
				v = 1500
			}
			row = append(row, fmt.Sprint(v))
		}
		text += "  - [" + strings.Join(row, ", ") + "]\n"
	}
	links, err := ParseLinks([]byte(text), "opteron.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l := important(t, opteron(t), Options{VCPUs: 16, Links: links})
	sets := map[string]bool{}
	for _, p := range l.Placements {
		sets[p.Nodes.String()] = true
		for _, k := range p.Packings {
			for _, b := range k.Blocks {
				if b.String() == "0-1,4-5" || b.String() == "2-3,6-7" {
					t.Errorf("the packing %v is dominated by 0,2,4,6 and 1,3,5,7", k.Blocks)
				}
			}
		}
	}
	for _, want := range []string{"2-5", "0-1,6-7"} {
		if !sets[want] {
			t.Errorf("no placement on nodes %s: %v", want, sets)
		}
	}
}

// twin finds all classes of blocks in packings that none dominates, by trying every
// packing, as the paper has it.
func twin(p *problem, strict bool) map[string]bool {
	k := packer{input: &p.input, strict: strict}
	all := map[string][][]uint64{} // packings by the sizes of their blocks
	var pack func(mask uint64, empty []int, blocks []uint64)
	pack = func(mask uint64, empty []int, blocks []uint64) {
		if mask == 0 {
			sizes := labelOf(&k, blocks).sizes()
			all[sizes] = append(all[sizes], slices.Clone(blocks))
			return
		}
		first := mask & -mask
		for sub := mask; sub != 0; sub = (sub - 1) & mask {
			size := len(indexes(sub))
			if sub&first != 0 && slices.Contains(p.sizes, size) && k.feasible(sub, size) {
				pack(mask&^sub, empty, append(blocks, sub))
			}
		}
		if without := k.leave(empty, indexes(first)[0]); without != nil {
			pack(mask&^first, without, blocks)
		}
	}
	pack(uint64(1)<<p.n-1, make([]int, len(p.fits)), nil)
	kept := map[string]bool{}
	for _, packings := range all {
		for i, a := range packings {
			la, beaten := labelOf(&k, a), false
			for j, b := range packings {
				if lb := labelOf(&k, b); i != j && lb.dominates(la) && (!la.dominates(lb) || j < i) {
					beaten = true
				}
			}
			if beaten {
				continue
			}
			for _, block := range a {
				for _, plan := range k.plansOf(block, len(indexes(block))) {
					kept[fmt.Sprint(p.place(block, len(indexes(block)), planOf(plan)).Scores)] = true
				}
			}
		}
	}
	return kept
}

func labelOf(k *packer, blocks []uint64) (l label) {
	for _, b := range blocks {
		l = l.with(k.classOf(b))
	}
	return l
}

// On every machine of up to 7 nodes, even and uneven, with links that are regular, few or
// all different, the list is that of the twin, for every number of vCPUs.
func TestTwin(t *testing.T) {
	compared := 0
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 23))
		n, values := 1+r.IntN(7), 1+r.IntN(3)
		d := apart(n, func(int, int) int { return 12 + 4*r.IntN(values) })
		for i := range d {
			for j := range i {
				d[i][j] = d[j][i]
			}
		}
		cores := equally(n, 1+r.IntN(4))
		if r.IntN(3) == 0 {
			for i := range cores {
				cores[i] = 1 + r.IntN(4)
			}
		}
		m := fake(d, cores, 1+r.IntN(2))
		for v := 1; v <= m.OnlineCPUs().Len(); v++ {
			o := Options{VCPUs: v, Strict: r.IntN(4) == 0}
			p, err := newProblem(m, o)
			if err != nil {
				t.Fatal(err)
			}
			want := twin(p, o.Strict)
			l, err := Important(m, o)
			if errors.Is(err, ErrNoPlacement) && len(want) == 0 {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, one := range l.Placements {
				got[fmt.Sprint(one.Scores)] = true
				if one.CPUs.Len() != v || !one.CPUs.SubsetOf(m.CPUsOf(one.Nodes)) {
					t.Fatalf("seed %d, %d vCPUs: CPUs %s on nodes %s", seed, v, one.CPUs, one.Nodes)
				}
			}
			compared++
			if len(got) != len(l.Placements) || !sameKeys(got, want) {
				t.Fatalf("seed %d, %d vCPUs, strict %v, nodes of %v cores:\ngot  %v\nwant %v", seed, v, o.Strict, cores, got, want)
			}
		}
	}
	if compared < 250 {
		t.Errorf("only %d lists were compared", compared)
	}
}

func sameKeys(a, b map[string]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) == len(b)
}

// Renumbering the nodes renumbers the answer: scores stay.
func TestRenumbering(t *testing.T) {
	m := opteron(t)
	want := scores(important(t, m, Options{VCPUs: 16}))
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 1))
		order := r.Perm(8)
		d := apart(8, func(i, j int) int { v, _ := m.Distance(order[i], order[j]).Get(); return v })
		if got := scores(important(t, fake(d, equally(8, 4), 2), Options{VCPUs: 16})); !slices.Equal(got, want) {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// Large machines that are regular are exact within a bounded number of tries: 16 nodes as
// a hypercube, and all alike; 24 and 32 in pairs (SGI UV) and in groups of four.
func TestLargeMachines(t *testing.T) {
	cube := func(i, j int) int { return 10 + 6*onesOf(i^j) }
	blades := func(size int) func(i, j int) int {
		return func(i, j int) int {
			if i/size == j/size {
				return 13
			}
			return 40
		}
	}
	for name, c := range map[string]struct {
		n, vcpus int
		of       func(i, j int) int
	}{
		"hypercube": {16, 32, cube}, "flat": {16, 24, flat},
		"uv": {24, 48, blades(2)}, "uv 32": {32, 64, blades(2)}, "servers of four": {24, 24, blades(4)},
	} {
		t.Run(name, func(t *testing.T) {
			l := important(t, fake(apart(c.n, c.of), equally(c.n, 4), 2), Options{VCPUs: c.vcpus})
			t.Logf("%d placements of %d packings", len(l.Placements), l.Packings)
			if len(l.Placements) == 0 {
				t.Error("no placement")
			}
		})
	}
}

func onesOf(x int) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

// Numbers that no placement has name the nearest that have one.
func TestNoPlacement(t *testing.T) {
	m := fake(apart(4, flat), equally(4, 12), 2)
	for vcpus, want := range map[int]string{0: "give a number above 0", -3: "give a number above 0", 23: "22 and 24", 97: "nearest number that has one is 96", 1 << 40: "96"} {
		_, err := Important(m, Options{VCPUs: vcpus})
		if !errors.Is(err, ErrNoPlacement) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d vCPUs: %v, want %q", vcpus, err, want)
		}
	}
	if _, err := Important(opteron(t), Options{VCPUs: 24, Strict: true}); err != nil { // 4 + 4, 8
		t.Error(err)
	}
}

// Nodes without CPUs, sparse ids and offline CPUs.
func TestUnevenMachines(t *testing.T) {
	m := fake(apart(4, flat), []int{4, 4, 0, 4}, 2)
	m.Nodes[3].ID = 9
	m.CPUs[0].Online, m.Nodes[0].CPUs = false, m.Nodes[0].CPUs.Without(0)
	l := important(t, m, Options{VCPUs: 8})
	for _, p := range l.Placements {
		if p.Nodes.Has(2) || p.CPUs.Has(0) || p.CPUs.Len() != 8 {
			t.Errorf("nodes %s, CPUs %s", p.Nodes, p.CPUs)
		}
	}
	if got := l.Placements[0]; got.Nodes.Has(0) || got.Nodes.Len() != 1 {
		t.Errorf("the smallest: nodes %s, want one with 8 CPUs", got.Nodes)
	}
}

func TestParseLinksRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: [0, 1]\nmb_s: [[null, 5], [null, null]]":       "from node 1 to node 0 is missing",
		"nodes: [0, 1]\nmb_s: [[null, -5], [5, null]]":         "must be a number above 0",
		"nodes: [0, 1]\nmb_s: [[null, .inf], [5, null]]":       "mb_s",
		"nodes: [0, 1]\nmb_s: [[null, .nan], [5, null]]":       "mb_s",
		"nodes: [0, 1]\nmb_s: [[null, 5]]":                     "1 rows for 2 nodes",
		"nodes: [0, 0]\nmb_s: [[null, 5], [5, null]]":          "named twice",
		"nodes: [0, 1]\nmb_s: [[null, 5, 6], [5, null]]":       "3 columns for 2 nodes",
		"nodes: [0, 1]\nlinks: 3\nmb_s: [[1, 5], [5, null]]\n": "links",
	} {
		if l, err := ParseLinks([]byte(text), "links.yaml"); l != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseLinks(f *testing.F) {
	f.Add([]byte("nodes: [0, 1]\nmb_s:\n  - [null, 5400]\n  - [5400, null]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLinks(text, "links.yaml")
		if (err == nil) != (l != nil) {
			t.Fatalf("%v, %v", l, err)
		}
	})
}
