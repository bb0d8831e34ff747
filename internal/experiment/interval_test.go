// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// shapes are distributions of run times, with their true medians.
var shapes = []struct {
	name   string
	median float64
	draw   func(*rand.Rand) float64
}{
	{"normal", 100, func(r *rand.Rand) float64 { return 100 + 5*r.NormFloat64() }},
	{"skewed", 100, func(r *rand.Rand) float64 { return 100 * math.Exp(0.5*r.NormFloat64()) }},
	// Two modes, like a program that runs on the right node or on the wrong one.
	// 60 % of the values are of the fast mode, so the median is its 83.3th
	// percentile.
	{"bimodal", 100 + 2*0.967422, func(r *rand.Rand) float64 {
		if r.Float64() < 0.6 {
			return 100 + 2*r.NormFloat64()
		}
		return 140 + 2*r.NormFloat64()
	}},
}

func drawn(r *rand.Rand, n int, draw func(*rand.Rand) float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = draw(r)
	}
	return out
}

const simulations = 4000

// As many intervals hold the true median as their coverage says, and at least
// Nominal with 6 runs.
func TestDecisionMedianCoverage(t *testing.T) {
	for _, shape := range shapes {
		for _, n := range []int{2, 3, 5, 6, 7, 10, 15, 30} {
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			held, said := 0, 0.0
			for range simulations {
				s, _ := Summarise(drawn(rng, n, shape.draw))
				if said = s.CI.Coverage; s.CI.Has(shape.median) {
					held++
				}
			}
			got := float64(held) / simulations
			if got < said-0.02 || got > said+0.02 || n >= 6 && said < Nominal {
				t.Errorf("%s, %d runs: %.3f held the median, %.3f said", shape.name, n, got, said)
			}
		}
	}
}

// The order statistics of textbooks: k of n for 95 %.
func TestDecisionMedianRanks(t *testing.T) {
	for n, k := range map[int]int{2: 1, 5: 1, 6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 50: 18} {
		sorted := make([]float64, n)
		for i := range sorted {
			sorted[i] = float64(i + 1)
		}
		if ci := medianInterval(sorted); ci.Low != float64(k) || ci.High != float64(n+1-k) {
			t.Errorf("of %d: %+v, want from the %dth", n, ci, k)
		}
	}
	if medianInterval([]float64{1}).Known() {
		t.Error("one value has an interval")
	}
}

// The counts of U match an enumeration of all orders.
func TestDecisionMannWhitney(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for m := 1; m <= 5; m++ {
			want := make([]float64, n*m+1)
			for mask := range 1 << (n + m) {
				u, ones := 0, 0
				for i := range n + m {
					if mask>>i&1 == 1 {
						ones++
					} else {
						u += ones
					}
				}
				if ones == n {
					want[u]++
				}
			}
			if got := mannWhitney(n, m); !slices.Equal(got, want) {
				t.Errorf("%d and %d: %v, want %v", n, m, got, want)
			}
		}
	}
	for _, c := range []struct{ n, m, k int }{{3, 3, 1}, {4, 4, 1}, {5, 5, 3}, {10, 10, 24}, {20, 20, 128}} {
		if k, coverage := moses(c.n, c.m); k != c.k || (coverage >= Nominal) != (c.n > 3) {
			t.Errorf("%d and %d: k %d, coverage %.4f, want %d", c.n, c.m, k, coverage, c.k)
		}
	}
}

func TestDecisionRatioCoverage(t *testing.T) {
	const factor = 0.7
	for _, shape := range shapes {
		for _, n := range []int{3, 4, 6, 10, 45} {
			rng := rand.New(rand.NewPCG(uint64(n), 2))
			held, said, differs := 0, 0.0, 0
			for range simulations / 2 {
				a, b := drawn(rng, n, shape.draw), drawn(rng, n, shape.draw)
				if r, _ := RatioOf(a, b); r.Differs() {
					differs++
				}
				for i := range a {
					a[i] *= factor
				}
				r, _ := RatioOf(a, b)
				if said = r.CI.Coverage; r.CI.Has(factor) {
					held++
				}
			}
			got := float64(held) / (simulations / 2)
			if got < said-0.02 || n >= 4 && said < Nominal {
				t.Errorf("%s, %d runs: %.3f held the ratio, %.3f said", shape.name, n, got, said)
			}
			if wrong := float64(differs) / (simulations / 2); wrong > 0.07 {
				t.Errorf("%s, %d runs: %.3f differ where nothing does", shape.name, n, wrong)
			}
		}
	}
}

// The counts of signed ranks match an enumeration of all signs, and the tables of textbooks.
func TestDecisionSignedRanks(t *testing.T) {
	for n, k := range map[int]int{2: 1, 5: 1, 6: 1, 8: 4, 10: 9, 12: 14, 15: 26, 20: 53, 30: 138} {
		got, coverage := tukey(n)
		if got != k || (coverage >= Nominal) != (n > 5) {
			t.Errorf("%d pairs: k %d, coverage %.4f, want %d", n, got, coverage, k)
		}
		if n > 12 {
			continue
		}
		fewer := 0
		for signs := range 1 << n {
			sum := 0
			for i := range n {
				sum += (signs >> i & 1) * (i + 1)
			}
			if sum < k {
				fewer++
			}
		}
		if want := 1 - 2*float64(fewer)/math.Pow(2, float64(n)); math.Abs(coverage-want) > 1e-12 {
			t.Errorf("%d pairs: coverage %v, want %v", n, coverage, want)
		}
	}
	exact, _ := tukey(mostPairs)
	if normal, _ := tukey(mostPairs + 1); normal < exact || normal > exact+40 {
		t.Errorf("k jumps from %d to %d where the count ends", exact, normal)
	}
}

// Pairs in alternating order hold the ratio under a drift that hides it from RatioOf.
func TestDecisionPairedCoverage(t *testing.T) {
	const factor = 0.9
	for _, n := range []int{3, 6, 8, 20, 70} {
		for _, rise := range []float64{0, 0.6} { // of the load, from begin to end
			rng := rand.New(rand.NewPCG(uint64(n), 4))
			held, said, wrong, found := 0, 0.0, 0, 0
			for range simulations / 2 {
				a, b := make([]float64, n), make([]float64, n)
				for i := range n {
					first, second := &a[i], &b[i]
					if i%2 == 1 {
						first, second = second, first
					}
					for j, x := range []*float64{first, second} {
						*x = (1 + rise*float64(2*i+j)/float64(2*n)) * math.Exp(0.02*rng.NormFloat64())
					}
				}
				if r, _ := PairedRatio(a, b); r.Differs() {
					wrong++
				}
				for i := range a {
					a[i] *= factor
				}
				r, _ := PairedRatio(a, b)
				if said = r.CI.Coverage; r.CI.Has(factor) {
					held++
				}
				if r.Differs() {
					found++
				}
			}
			share := func(n int) float64 { return float64(n) / (simulations / 2) }
			if share(held) < said-0.02 || n >= 6 && said < Nominal || share(wrong) > 0.06 {
				t.Errorf("%d pairs, a rise of %v: %.3f held the ratio, %.3f said; %.3f differ where nothing does", n, rise, share(held), said, share(wrong))
			}
			if n >= 6 && share(found) < 0.95 {
				t.Errorf("%d pairs, a rise of %v: found in %.3f", n, rise, share(found))
			}
		}
	}
}

func TestDecisionPairs(t *testing.T) {
	for name, c := range map[string][2][]float64{"none": {nil, nil}, "one is missing": {{1, 2}, {1}}, "nothing": {{1, 0}, {1, 1}}, "no number": {{1, math.NaN()}, {1, 1}}} {
		if _, ok := PairedRatio(c[0], c[1]); ok {
			t.Errorf("%s: a ratio", name)
		}
	}
	if r, ok := PairedRatio([]float64{2}, []float64{1}); !ok || r.CI.Known() || math.Abs(r.Value-2) > 1e-12 {
		t.Errorf("one pair: %+v", r)
	}
	if r, ok := PairedRatio([]float64{2e200, 2, 2e-200, 2, 2, 2}, []float64{1e200, 1, 1e-200, 1, 1, 1}); !ok || !r.Differs() || math.Abs(r.Value-2) > 1e-9 {
		t.Errorf("large and small pairs: %+v", r)
	}
}

func TestDecisionRatio(t *testing.T) {
	if _, ok := RatioOf([]float64{1, 0}, []float64{1}); ok {
		t.Error("a ratio of nothing")
	}
	if _, ok := RatioOf(nil, []float64{1}); ok {
		t.Error("a ratio of no values")
	}
	r, ok := RatioOf([]float64{2, 2.2, 2.1, 1.9}, []float64{1, 1.1, 1.05, 0.95})
	if !ok || math.Abs(r.Value-2) > 0.03 || !r.Differs() || r.CI.Low <= 1.5 || r.CI.High >= 2.5 {
		t.Errorf("%+v", r)
	}
	if r, _ := RatioOf([]float64{2, 2.2, 2.1}, []float64{1, 1.1, 1}); r.Differs() || r.CI.Coverage >= Nominal {
		t.Errorf("3 runs each are called sure: %+v", r)
	}
	if r, _ := RatioOf([]float64{2}, []float64{1}); r.CI.Known() || r.Value != 2 {
		t.Errorf("one run each: %+v", r)
	}
}

// Chance alone is called a difference in one case of 20; a real difference is
// found.
func TestDecisionSpread(t *testing.T) {
	sum := func(r *rand.Rand, n int, scale float64, draw func(*rand.Rand) float64) Summary {
		v := drawn(r, n, draw)
		for i := range v {
			v[i] = 100 + scale*(v[i]-100)
		}
		s, _ := Summarise(v)
		return s
	}
	for _, n := range []int{5, 6, 10} {
		rng := rand.New(rand.NewPCG(uint64(n), 3))
		const rounds = 150
		for _, shape := range shapes {
			wrong, found := 0, 0
			for i := range uint64(rounds) {
				if s, ok := CompareSpread(sum(rng, n, 1, shape.draw), sum(rng, n, 1, shape.draw), i); ok && s.Differs() {
					wrong++
				}
				if s, ok := CompareSpread(sum(rng, n, 0.1, shape.draw), sum(rng, n, 1, shape.draw), i); ok && s.Differs() && s.Ratio < 1 {
					found++
				}
			}
			t.Logf("%s, %d runs: %d of %d wrong, %d found", shape.name, n, wrong, rounds, found)
			if wrong > rounds/8 || n >= 10 && shape.name == "normal" && found < rounds*9/10 {
				t.Errorf("%s, %d runs: %d of %d wrong, %d found", shape.name, n, wrong, rounds, found)
			}
		}
	}
	few, _ := Summarise([]float64{1, 2, 3, 4})
	if _, ok := CompareSpread(few, few, 1); ok {
		t.Error("4 runs were enough")
	}
	still, _ := Summarise([]float64{1, 1, 1, 1, 1, 1})
	moves, _ := Summarise([]float64{1, 2, 3, 4, 5, 6})
	if s, ok := CompareSpread(still, moves, 1); !ok || s.Ratio != 0 || !s.Differs() {
		t.Errorf("one arm does not vary: %+v", s)
	}
	if s, ok := CompareSpread(moves, still, 1); !ok || s.Ratio != mostSpread || !s.Differs() {
		t.Errorf("the other arm does not vary: %+v", s)
	}
	same, _ := Summarise([]float64{1, 1, 1, 1, 1, 1})
	if _, ok := CompareSpread(same, same, 1); ok {
		t.Error("runs that do not vary were compared")
	}
}
