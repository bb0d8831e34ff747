// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func raoBench() *bench {
	f := newFake()
	return &bench{m: f.m, prober: f, free: map[int]unit.Bytes{}, profile: profile.Profile{}}
}

// Threads have a core each as long as there are cores.
func TestDecisionCoresFirst(t *testing.T) {
	b := raoBench()
	if got := b.coresFirst(0); !slices.Equal(got, []int{0, 2, 1, 3}) {
		t.Errorf("node 0: %v", got)
	}
	for spread, want := range map[string][]int{profile.Intra: {0, 2, 1}, profile.Inter: {0, 4, 2}} {
		if got := b.raoCPUs(cell{profile.RaoKey{Threads: 3, Spread: spread}}, []int{0, 2}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", spread, got, want)
		}
	}
	for i := range b.m.CPUs {
		b.m.CPUs[i].Core = unit.None[int]()
	}
	if got := b.coresFirst(0); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("cores unknown: %v", got)
	}
}

// Each repeat of a small cell has places of its own; threads pass their list before.
func TestDecisionRaoPlaces(t *testing.T) {
	b := raoBench()
	nodes := b.raoNodes()
	cells := b.cells(nodes)
	if len(cells) > 80 {
		t.Errorf("%d cells", len(cells))
	}
	for _, c := range cells {
		seen := map[unit.Bytes]int{}
		for repeat := range 3 {
			for _, j := range b.raoJobs(c, nodes, repeat) {
				seen[j.Buffers[0].Bytes]++
				if (j.Laps > 1) != (c.WS <= raoWarm*b.llc()) {
					t.Errorf("%v: %d laps", c, j.Laps)
				}
				if k := len(j.Threads) - 1; c.Sharing > 0 && (j.Threads[k].Shared != k+1 || j.Threads[k].AddEvery != 1 || j.Buffers[k+1].Bytes != c.Sharing) {
					t.Errorf("%v: thread %+v of buffers %+v", c, j.Threads[k], j.Buffers)
				}
			}
		}
		want := 3 * raoDraws
		if c.WS > raoDrawn*b.llc() {
			want = 1
		}
		if len(seen) != want {
			t.Errorf("%v: places %v, want %d", c, seen, want)
		}
	}
}

// Spread memory has small pages, unless a chase has many huge ones.
func TestDecisionHugeEnough(t *testing.T) {
	two := set.FromNodes(0, 2)
	for _, c := range []struct {
		mode  membench.Policy
		work  membench.Work
		bytes unit.Bytes
		want  bool
	}{
		{membench.Local, membench.Read, unit.MiB, true}, {membench.Bind, membench.Chase, unit.MiB, true}, {membench.Preferred, membench.Chase, unit.MiB, true},
		{membench.Interleave, membench.Chase, 4 * unit.MiB, false}, {membench.Interleave, membench.Chase, 256*unit.MiB - 1, false},
		{membench.Interleave, membench.Chase, 256 * unit.MiB, true}, {membench.Interleave, membench.Read, unit.GiB, false},
		{membench.WeightedInterleave, membench.Chase, 4 * unit.MiB, false}, {membench.PreferredMany, membench.Copy, 4 * unit.MiB, false},
	} {
		if got := (policy{"", c.mode, two}).hugeEnough(c.work, c.bytes); got != c.want {
			t.Errorf("%s, %s, %v: %v", c.mode, c.work, c.bytes, got)
		}
	}
}

// A repeat of a cell is the mean of its places, with equal weights.
func TestDecisionRaoPooled(t *testing.T) {
	place := func(ops uint64, misses float64) membench.Result {
		n := unit.Some(float64(ops))
		return membench.Result{Threads: []membench.ThreadResult{{Ops: ops, Elapsed: 1e6, Cycles: unit.Some(2e6), L2Misses: n, LLCMisses: unit.Some(misses), Requests: n, Critical: n}}}
	}
	got, err := readRao(outcome{jobs: []membench.Result{place(10000, 0), place(5000, 5000)}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{150, 300, 0.5, 0.5, 1, 1, 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	unknown := place(1, 0)
	unknown.Threads[0].Cycles = unit.None[float64]()
	if got, err = readRao(outcome{jobs: []membench.Result{place(1, 0), unknown}}); err != nil || !math.IsNaN(got[1]) || math.IsNaN(got[0]) {
		t.Errorf("%v %v", got, err)
	}
}
