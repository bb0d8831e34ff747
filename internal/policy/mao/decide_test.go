// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/window"
)

// Decide is Step without words: on thousands of random windows, over which states go
// their way through JSON or not, it decides the same.
func TestDecideIsStep(t *testing.T) {
	done := map[string]int{}
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 6))
		h, cfg, st := randomHost(r), randomConfig(r), State{}
		for range 40 {
			mutate(r, h)
			w := h.Window()
			next, actions := sameAsStep(t, h.Machine, cfg, st, w)
			for _, a := range actions {
				done[a.Reason.Rule]++
			}
			if st = next; r.IntN(2) == 0 {
				st = roundTrip(t, next)
			}
		}
	}
	for _, rule := range []string{"mao.bind", "mao.unbind.A", "mao.unbind.B", "mao.unbind.orphan", "mao.drifted", "mao.room", "mao.room.over"} {
		if done[rule] == 0 {
			t.Errorf("%s never happened: too little was compared", rule)
		}
	}
}

func sameAsStep(t *testing.T, m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action) {
	t.Helper()
	before := print(t, st, w)
	want, wantActions, reasons := Step(m, cfg, st, w)
	got, actions, rules := Decide(m, cfg, st, w)
	if print(t, st, w) != before {
		t.Fatalf("window %d: Decide or Step changed its arguments", w.Seq)
	}
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(actions, wantActions) || len(rules) != len(reasons) {
		t.Fatalf("window %d: Decide says %+v %v, Step %+v %v", w.Seq, got, actions, want, wantActions)
	}
	for i, r := range reasons {
		if rules[i] != r.Rule {
			t.Fatalf("window %d: Decide says %s of %s, Step %s", w.Seq, rules[i], r.Workload, r.Rule)
		}
	}
	return got, actions
}

func TestDecideOnLargerMachines(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		m, w := randomWindow(r, 8, 24)
		cfg, st := DefaultConfig(), State{}
		cfg.Strategy, cfg.MinHistory = []Strategy{StrategyA, StrategyB}[seed%2], 1
		for range 10 {
			w.Seq++
			st, _ = sameAsStep(t, m, cfg, st, w)
		}
	}
}

// The dumb twin of History: a plain slice, copied. States that part ways share what
// was before, and none of them sees what the other one added.
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
			n := node{history: p.h.old, recent: p.h.recent}
			if got := append(append([]float64{}, p.h.old...), p.h.recent...); len(got) != p.h.len() || !reflect.DeepEqual(got, append([]float64{}, p.plain...)) {
				t.Fatalf("seed %d: history %d is %v, want %v", seed, i, got, p.plain)
			}
			need, v := 1+r.IntN(20), r.Float64()
			p95, ok := n.p95Of(need)
			if got := n.above(v, need); got != (ok && v > p95) || n.above(p95, need) {
				t.Fatalf("seed %d: %v above the P95 of %v, which is %v: %v", seed, v, p.plain, p95, got)
			}
		}
	}
}

// Memories of one state share a slice, but appending to one does not reach the next.
func TestLocalsAreApart(t *testing.T) {
	m, windows := steadyHost(rand.New(rand.NewPCG(1, 9)))
	st := steadyState(m, DefaultConfig(), windows)
	for _, mem := range st.Workloads {
		if len(mem.Local) != localHistory || cap(mem.Local) != len(mem.Local) {
			t.Fatalf("%s: %d ratios of %d", mem.Workload, len(mem.Local), cap(mem.Local))
		}
	}
}

func TestSteadyIsSteady(t *testing.T) {
	m, windows := steadyHost(rand.New(rand.NewPCG(1, 5)))
	cfg := DefaultConfig()
	st := steadyState(m, cfg, windows)
	_, actions, rules := Decide(m, cfg, st, nth(windows, 600))
	count := map[string]int{}
	for _, rule := range rules {
		count[rule]++
	}
	want := map[string]int{"mao.keep.bound": 10, "mao.keep.on-target": 3, "mao.skip.cpu": 3, "mao.skip.not-approved": 4}
	if len(actions) > 0 || !reflect.DeepEqual(count, want) || st.Nodes[0].len() != cfg.HistoryWindows || st.Bound(windows[0].Workloads[0].ID) != set.FromNodes(0) {
		t.Errorf("not what is to be measured: %v, %v", actions, count)
	}
}
