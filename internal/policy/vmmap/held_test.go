// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"
	"math/rand/v2"
	"testing"

	"homenode/internal/unit"
)

// A cache that evicts lines at random is the brute-force twin of the formula: a workload's
// occupancy is within its bounds, except by chance.
func TestBoundsHoldACache(t *testing.T) {
	const lines = 20000
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + r.IntN(4)
		cache := make([]int, lines)
		held, bounds := make([]float64, n), make([]Bounds, n)
		for i := range bounds {
			bounds[i] = anything
		}
		begin := r.IntN(n) // all lines belong to some workload at first
		for i := range cache {
			cache[i] = begin
		}
		held[begin] = lines
		for range 8 {
			brings := make([]int, n)
			for i := range brings {
				brings[i] = r.IntN(lines) * r.IntN(2)
			}
			mixed, all := []int{}, 0
			for i, b := range brings {
				for range b {
					mixed = append(mixed, i)
				}
				all += b
			}
			r.Shuffle(len(mixed), func(a, b int) { mixed[a], mixed[b] = mixed[b], mixed[a] })
			for _, i := range mixed {
				at := r.IntN(lines)
				held[cache[at]]--
				cache[at] = i
				held[i]++
			}
			for i := range bounds {
				before := bounds[i]
				bounds[i] = before.after(float64(brings[i])/lines, float64(all-brings[i])/lines)
				b := bounds[i]
				if is := held[i] / lines; is < b.Low-0.02 || is > b.High+0.02 {
					t.Fatalf("seed %d: it holds %.3f, bounds %+v", seed, is, b)
				}
				if wide := (before.High - before.Low) * math.Exp(-float64(all)/lines); math.Abs(b.High-b.Low-wide) > 1e-5 {
					t.Fatalf("seed %d: %+v after %+v: %.3f apart, want %.3f", seed, b, before, b.High-b.Low, wide)
				}
			}
		}
	}
}

// Bounds of its occupancy are for where that is not counted.
func TestBounded(t *testing.T) {
	s := sampleOf(t, "rabbit")
	if got := s.bounded(anything); got.Low.Known() || got.High.Known() {
		t.Errorf("bounds where what it holds is counted: %+v", got)
	}
	if got := s.with(Bounds{0.25, 0.5}); got.Low.Or(0) != float64(unit.MiB) || got.High.Or(0) != float64(2*unit.MiB) {
		t.Errorf("a quarter to a half of 4 MiB: %+v", got)
	}
}

// with is the sample with only bounds of its occupancy.
func (s Sample) with(b Bounds) Sample {
	s.Held = unit.None[float64]()
	return s.bounded(b)
}

// A workload that moves to another cache, or shares one with an uncounted workload, may
// hold anything. Of several caches, each is treated alone.
func TestBoundsAreGivenUp(t *testing.T) {
	at := func(shares ...float64) Site { return Site{Shares: shares} }
	known := fills{of: [][]float64{{5, 0}, {1, 1}}, all: []float64{6, 1}}
	l := &Look{}
	see := func(s Site, f fills) Bounds { l.bound(s, 0, f); return l.here(s) }
	if b := see(at(1, 0), known); !(b.High-b.Low < 0.01) || math.Abs(b.Low-5.0/6) > 0.01 {
		t.Errorf("after six caches: %+v", b)
	}
	if b := see(at(0, 1), fills{of: [][]float64{{0, 0}, nil}, all: []float64{0, 0}}); b != anything {
		t.Errorf("elsewhere: %+v", b)
	}
	see(at(1, 0), known)
	if b := see(at(1, 0), fills{of: [][]float64{{5, 0}, nil}, all: []float64{math.NaN(), 0}}); b != anything {
		t.Errorf("beside an uncounted workload: %+v", b)
	}
	see(at(1, 0), known)
	if b := see(Site{}, known); b != anything {
		t.Errorf("nowhere: %+v", b)
	}
	b := see(at(0.5, 0.5), fills{of: [][]float64{{0.1, 0.1}}, all: []float64{10.1, 0.1}})
	if want := (Bounds{(0.0099 + 0.0952) / 2, (0.0099 + 1) / 2}); math.Abs(b.Low-want.Low) > 0.001 || math.Abs(b.High-want.High) > 0.001 {
		t.Errorf("in two caches, one of which another workload fills: %+v, want %+v", b, want)
	}
}

func TestDecay(t *testing.T) {
	for _, x := range []float64{0, 1e-6, 0.1, 1, 5, 10} {
		if got, want := decay(x), math.Exp(-x); math.Abs(got-want) > 1e-4*want {
			t.Errorf("e^-%v: %v, want %v", x, got, want)
		}
	}
	if decay(1e9) > 1e-9 {
		t.Error("after many lines, something stays")
	}
}
