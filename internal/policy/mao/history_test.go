// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"homenode/internal/set"
)

// The brute-force twin of History: all figures in order. Histories that diverge keep their
// own figures.
func TestHistoryTwin(t *testing.T) {
	type pair struct {
		h     History
		plain []float64
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 8))
		all, limit := []pair{{}}, 1+r.IntN(100)
		for range 400 {
			from := all[max(0, len(all)-1-r.IntN(3))]
			v := r.Float64()
			plain := append(append([]float64{}, from.plain...), v)
			all = append(all, pair{from.h.with(v, limit), plain[max(0, len(plain)-limit):]})
		}
		for i, p := range all {
			if !slices.Equal(p.h.Utilisation, p.plain) {
				t.Fatalf("seed %d: history %d is %v, want %v", seed, i, p.h.Utilisation, p.plain)
			}
			need := 1 + r.IntN(20)
			p95, ok := p.h.p95(need).Get()
			if ok != (len(p.plain) >= need) {
				t.Fatalf("seed %d: of %d figures, %d needed: %v", seed, len(p.plain), need, ok)
			}
			if !ok {
				continue
			}
			ordered := slices.Sorted(slices.Values(p.plain))
			if want := ordered[(95*len(ordered)+99)/100-1]; p95 != want {
				t.Fatalf("seed %d: the P95 of %v is %v, want %v", seed, p.plain, p95, want)
			}
		}
	}
}

// The next state does not change the local ratios that a state remembers.
func TestLocalsAreApart(t *testing.T) {
	m, windows := steadyHost(rand.New(rand.NewPCG(1, 9)))
	st := steadyState(m, DefaultConfig(), windows)
	before := print(t, st, windows[0])
	one, _, _ := Step(m, DefaultConfig(), st, nth(windows, 600))
	two, _, _ := Step(m, DefaultConfig(), st, nth(windows, 601))
	if print(t, st, windows[0]) != before {
		t.Fatal("a step changed the state that it came from")
	}
	for i := range st.Workloads {
		a, b := one.Workloads[i].Local, two.Workloads[i].Local
		if len(a) != localHistory || len(b) != localHistory || &a[0] == &b[0] {
			t.Fatalf("%s: %d and %d ratios", st.Workloads[i].Workload, len(a), len(b))
		}
	}
}

func TestSteadyIsSteady(t *testing.T) {
	m, windows := steadyHost(rand.New(rand.NewPCG(1, 5)))
	cfg := DefaultConfig()
	st := steadyState(m, cfg, windows)
	_, actions, reasons := Step(m, cfg, st, nth(windows, 600))
	count := map[string]int{}
	for _, why := range reasons {
		count[why.Rule]++
	}
	want := map[string]int{"mao.keep.bound": 10, "mao.keep.on-target": 3, "mao.skip.cpu": 3, "mao.skip.not-approved": 4}
	if len(actions) > 0 || !reflect.DeepEqual(count, want) || len(st.Nodes[0].Utilisation) != cfg.HistoryWindows || st.Bound(windows[0].Workloads[0].ID) != set.FromNodes(0) {
		t.Errorf("not what is to be measured: %v, %v", actions, count)
	}
}
