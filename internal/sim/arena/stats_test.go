// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"homenode/internal/experiment"
	"homenode/internal/sim/runner"
)

const skylake = "dual-skylake"

// made is a result of one machine and one mix, with one app: each policy's ops by seed.
func made(against string, ops map[string][]float64, order ...string) Result {
	r := Result{Schema: Schema, How: How, Name: "made", Against: against, Machines: []Named{{Name: skylake}}, Mixes: []Named{{Name: "x"}}}
	for i := range ops[against] {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	for _, p := range order {
		r.Policies = append(r.Policies, Named{Name: p})
		for i, o := range ops[p] {
			r.Cells = append(r.Cells, Cell{Machine: skylake, Mix: "x", Policy: p, Seed: r.Seeds[i], LocalRatio: 0.5, Apps: []App{{ID: "/a", Service: "a", Threads: 1, Ops: o, CPUPerOp: 1 / o, P99S: 1 / o, Fairness: 1}}})
		}
	}
	return r
}

// Seeds differ by far more than policies do. Paired, the policies can be told apart.
func TestDecisionPaired(t *testing.T) {
	base := []float64{100, 200, 50, 80, 400, 10}
	var faster []float64
	for i, b := range base {
		faster = append(faster, b*[]float64{1.1, 1.2, 1.15, 1.12, 1.18, 1.16}[i])
	}
	r := made("a", map[string][]float64{"a": base, "b": faster}, "a", "b")
	l := Compare(r, "b", "a")[0]
	if math.Abs(l.Speed.Median-1.155) > 1e-9 || math.Abs(l.Speed.CI.Low-1.1) > 1e-9 || math.Abs(l.Speed.CI.High-1.2) > 1e-9 || l.Pairs != 6 {
		t.Errorf("%+v", l.Speed)
	}
	if math.Abs(l.Speed.CI.Coverage-(1-2.0/64)) > 1e-9 || math.Abs(l.P99.Median-1/1.155) > 1e-3 {
		t.Errorf("%+v", l)
	}
	if side, ok := l.Side(); side != 1 || !ok {
		t.Errorf("side %d, %v", side, ok)
	}
}

// The geometric mean over apps: twice and half give 1. An app that starved gives 0; an app
// that the other policy starved too says nothing.
func TestDecisionSpeed(t *testing.T) {
	app := func(id string, ops float64) App { return App{ID: id, Ops: ops} }
	rated := func(id string, ops, cpu float64) App { return App{ID: id, Ops: ops, CPUPerOp: cpu, Rated: true} }
	for _, c := range []struct {
		ours, theirs []App
		want         float64
	}{
		{[]App{app("a", 20), app("b", 5)}, []App{app("a", 10), app("b", 10)}, 1},
		{[]App{app("a", 20), app("b", 0)}, []App{app("a", 10), app("b", 10)}, 0},
		{[]App{app("a", 20), app("b", 1)}, []App{app("a", 10), app("b", 0)}, 2},
		{[]App{app("a", 20)}, []App{app("b", 10)}, math.NaN()},
		{[]App{rated("a", 10, 0.5)}, []App{rated("a", 10, 1)}, 2},
		{[]App{rated("a", 5, 1)}, []App{rated("a", 10, 1)}, 0.5},
	} {
		got := ratioOf(&Cell{Apps: c.ours}, &Cell{Apps: c.theirs}, speedOf)
		if math.Abs(got-c.want) > 1e-12 && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%+v against %+v: %v, want %v", c.ours, c.theirs, got, c.want)
		}
	}
}

// sigma / mean of 9, 10, 11 is 0.1; only seeds with the same apps count.
func TestDecisionVariation(t *testing.T) {
	r := made("a", map[string][]float64{"a": {9, 10, 11}}, "a")
	if v, ok := Compare(r, "a", "a")[0].Variation.Get(); !ok || math.Abs(v-0.1) > 1e-12 {
		t.Errorf("%v, %v", v, ok)
	}
	r.Cells[1].Apps[0].Service = "other" // 9 and 11 remain: sigma is the root of 2
	if v, ok := Compare(r, "a", "a")[0].Variation.Get(); !ok || math.Abs(v-math.Sqrt2/10) > 1e-12 {
		t.Errorf("%v, %v", v, ok)
	}
	r.Cells[2].Apps[0].Threads = 5
	if v, ok := Compare(r, "a", "a")[0].Variation.Get(); ok {
		t.Errorf("%v of apps that are others in each seed", v)
	}
}

// Below six seeds there is no interval, and no rank.
func TestDecisionFewSeeds(t *testing.T) {
	five := map[string][]float64{"a": {1, 1, 1, 1, 1}, "b": {2, 2, 2, 2, 2}}
	r := made("a", five, "a", "b")
	s := Summarise(r)
	if p := s.Overall.Places[0]; p.Policy != "b" || p.Rank != 0 || p.Speed.CI.Known() || p.Unknown != 1 || p.Wins != 0 {
		t.Errorf("%+v", p)
	}
	if text := r.SeedsText(); !strings.Contains(text, "unknown") {
		t.Error(text)
	}
	six := map[string][]float64{}
	for k, v := range five {
		six[k] = append(v, v[0])
	}
	r = made("a", six, "a", "b")
	if p := Summarise(r).Overall.Places[0]; p.Rank != 1 || p.Wins != 1 || r.SeedsText() != "" {
		t.Errorf("%+v", p)
	}
}

// Policies whose intervals overlap share a rank with the first of them, and this does not
// chain: c overlaps b, but not a, which opened the rank.
func TestDecisionRankTies(t *testing.T) {
	place := func(name string, low, mid, high float64) Place {
		return Place{Policy: name, Speed: Estimate{N: 6, Median: mid, CI: experiment.Interval{Low: low, High: high, Coverage: 0.97}}}
	}
	for _, c := range []struct {
		places []Place
		want   string
	}{
		{[]Place{place("a", 1.1, 1.2, 1.3), place("b", 1.0, 1.15, 1.25), place("c", 0.9, 1.0, 1.05), place("d", 0.9, 0.95, 1)}, "a1 b1 c3 d3"},
		{[]Place{place("d", 0.9, 0.95, 1), place("a", 1.1, 1.2, 1.3)}, "a1 d2"},
		{[]Place{place("a", 1, 1, 1), place("b", 1, 1, 1)}, "a1 b1"},
		{[]Place{place("a", 1, 1, 1), {Policy: "b", Speed: Estimate{N: 1, Median: 2}}}, "b0 a0"},
	} {
		k := Ranking{Places: c.places}
		k.rank()
		var got []string
		for _, p := range k.Places {
			got = append(got, fmt.Sprintf("%s%d", p.Policy, p.Rank))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}

// A difference within Noticeable is a tie; so is an interval that contains 1.
func TestDecisionSide(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      int
	}{{1.01, 1.1, 1}, {1.001, 1.002, 0}, {0.9, 0.99, -1}, {0.9, 1.1, 0}, {0.996, 0.999, 0}} {
		l := Line{Speed: Estimate{CI: experiment.Interval{Low: c.low, High: c.high, Coverage: 0.96}}}
		if side, ok := l.Side(); side != c.want || !ok {
			t.Errorf("%v to %v: %d, want %d", c.low, c.high, side, c.want)
		}
	}
}

func TestSummaryOfTheToy(t *testing.T) {
	s := Summarise(run(t, toyPlan(), 2))
	p, ok := s.Overall.Place(runner.Interleave)
	if !ok || math.Abs(p.Speed.Median-0.5) > 1e-9 || p.Worst.Slowest == "" || math.Abs(p.Worst.SlowestSpeed-0.5) > 1e-9 || len(s.Rankings) != 2 || len(s.Lines) != 4*4 {
		t.Errorf("%+v", p)
	}
}
