// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestDecisionOrder(t *testing.T) {
	for seed := range uint64(200) {
		arms, repeats := 1+int(seed%6), 1+int(seed%5)
		order := Order(arms, repeats, seed)
		if !slices.Equal(order, Order(arms, repeats, seed)) {
			t.Fatal("the same seed gave another order")
		}
		seen := map[Run]int{}
		for i, r := range order {
			seen[r]++
			if r.Repeat != i/arms {
				t.Fatalf("seed %d: run %d is of repeat %d: repeats are not interleaved", seed, i, r.Repeat)
			}
			if r.Repeat%2 == 1 {
				mirror := order[(r.Repeat-1)*arms+arms-1-i%arms]
				if mirror.Arm != r.Arm {
					t.Fatalf("seed %d: repeat %d is not the mirror of the one before", seed, r.Repeat)
				}
			}
		}
		if len(seen) != arms*repeats {
			t.Fatalf("seed %d: %d different runs, want %d", seed, len(seen), arms*repeats)
		}
	}
}

func TestDecisionSummary(t *testing.T) {
	if _, ok := Summarise([]float64{math.NaN()}); ok {
		t.Error("unknown values gave a summary")
	}
	s, ok := Summarise([]float64{3, math.NaN(), 1, 2, 10})
	if !ok || s.N != 4 || s.Median != 2.5 || s.Min != 1 || s.Max != 10 || s.Mean != 4 || math.Abs(s.SD-math.Sqrt(50.0/3)) > 1e-12 {
		t.Errorf("%+v", s)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := make([]float64, 1+rng.IntN(9))
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		s, _ := Summarise(v)
		less, more := 0, 0
		for _, x := range v {
			if x < s.Median {
				less++
			} else if x > s.Median {
				more++
			}
		}
		if less > len(v)/2 || more > len(v)/2 || s.Min > s.Mean || s.Mean > s.Max {
			t.Fatalf("%v: %+v", v, s)
		}
	}
}

func TestDecisionPlan(t *testing.T) {
	plan := Plan(3, 2, 4, 7)
	if len(plan) != 18 || !slices.Equal(plan[6:], Order(3, 4, 7)) {
		t.Errorf("%v", plan)
	}
	for i, r := range plan[:6] {
		if !r.Warm || r.Arm != i%3 || r.Repeat != i/3 {
			t.Errorf("warm-up %d: %+v", i, r)
		}
	}
	if !slices.Equal(Plan(3, 0, 4, 7), Order(3, 4, 7)) {
		t.Error("the order differs without warm-ups")
	}
}

func TestDecisionSteady(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   bool
	}{
		{nil, false},
		{[]float64{1, 1}, false},
		{[]float64{9, 1, 1.1, 1.2}, true},
		{[]float64{1, 1, 1.1, 1.3}, false},
	} {
		if Steady(c.values, 3, 0.201) != c.want {
			t.Errorf("%v: want %v", c.values, c.want)
		}
	}
}
