// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/rand/v2"
	"slices"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// largeMachine has this many nodes of two CPUs.
func largeMachine(nodes int) machine.Machine {
	m := machine.Machine{Origin: "fake:large", PageSize: unit.Some(4 * unit.KiB)}
	for i := range nodes {
		cpus := set.FromCPUs(2*i, 2*i+1)
		m.Nodes = append(m.Nodes, machine.Node{ID: i, CPUs: cpus, Memory: unit.Some(unit.GiB)})
		m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: cpus, Size: unit.Some(fakeLLC)})
		row := make([]unit.Opt[int], nodes)
		for j := range row {
			row[j] = unit.Some(21)
		}
		row[i] = unit.Some(10)
		m.Distances = append(m.Distances, row)
		for cpu := range cpus.All() {
			m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Node: unit.Some(i), Core: unit.Some(cpu), LLC: unit.Some(i), Online: true})
		}
	}
	return m
}

// The time to save grows with the number of pieces, and not with its square: 64 nodes
// have 4096 latencies. Saves go by time.
func TestLargeMachine(t *testing.T) {
	f := newFake()
	f.m = largeMachine(64)
	o := f.options()
	o.Repeats, o.Parts = 1, []profile.Part{profile.Latency, profile.Migrating}
	saves, begin := 0, f.now
	o.Save = func(profile.Profile) error { saves++; return nil }
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Latency) != 64*64 || len(p.Migration) != 2*64*63 {
		t.Errorf("%d latencies, %d moves", len(p.Latency), len(p.Migration))
	}
	pieces := len(p.Latency) + len(p.Migration)
	if most := int(f.now.Sub(begin)/saveEvery) + pieces/blockSize + 10; saves > most || saves < pieces/blockSize {
		t.Errorf("%d saves of %d pieces, at most %d", saves, pieces, most)
	}
}

// put reads few entries of a long list: sorting it for each new entry took half a
// minute on 64 nodes.
func TestPutLooksAtFew(t *testing.T) {
	order := rand.New(rand.NewPCG(7, 8)).Perm(64 * 64)
	var got []int
	looked := 0
	f := figuresOf(&got, func(v int) int { looked++; return v }, order)
	for v := range order {
		f.put(v)
	}
	if most := len(order) * 14; looked > most || !slices.Equal(got, order) { // 12 steps halve it, and its own
		t.Errorf("looked at %d of %d, want %d at most", looked, len(order), most)
	}
}

// put is a stable sort by the order of keys, with unknown keys first.
func TestPutAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	type item struct{ key, n int }
	order := []int{4, 2, 9, 7, 1, 3}
	for range 300 {
		var got, want []item
		for n := range rng.IntN(12) {
			v := item{rng.IntN(11), n}
			figuresOf(&got, func(v item) int { return v.key }, order).put(v)
			want = append(want, v)
			slices.SortStableFunc(want, func(a, b item) int { return slices.Index(order, a.key) - slices.Index(order, b.key) })
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
