// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"slices"
	"testing"
)

func placed(name string, run []string, times ...float64) Placed {
	p := Placed{Name: name, Run: run}
	var runs []Sample
	for _, t := range times {
		runs = append(runs, Sample{Seconds: t, User: t / 2, Major: math.NaN()})
	}
	p.Fill(runs)
	return p
}

func TestDecisionVariation(t *testing.T) {
	v := Variation{Command: []string{"make", "a b"}, Seed: 1, Arms: []Placed{
		placed("as-is", nil, 1.0, 1.4, 1.01, 1.38, 1.02, 1.4, 1.0, 1.39),
		placed("node-0", []string{"--nodes", "0"}, 1.000, 1.002, 0.999, 1.001, 1.003, 1.000, 0.998, 1.001),
		placed("node-1", []string{"--nodes", "1"}, 1.100, 1.101, 1.099, 1.1005, 1.103, 1.098, 1.102, 1.1002),
		placed("interleave", []string{"--nodes", "0-1"}, 1.20, 1.26, 1.19, 1.23, 1.21, 1.28, 1.22, 1.18),
	}}
	v.Judge()
	d := v.Verdict
	if d.Fastest != "node-0" || len(d.FastestTies) != 0 || d.BelowStartUp || d.FewForSpread {
		t.Errorf("fastest: %+v", d)
	}
	if d.Steadiest == "as-is" || d.Steadiest == "interleave" || slices.Contains(d.SteadiestTies, "as-is") {
		t.Errorf("steadiest: %+v", d)
	}
	if d.ForRepeatable != "node-0" || !slices.Equal(d.RepeatableLine, []string{"homenode", "run", "--nodes", "0", "--", "make", "a b"}) {
		t.Errorf("repeatable: %+v", d)
	}
	a := v.Arms[1]
	if r, ok := a.Against.Get(); !ok || !r.Differs() || r.Value > 0.95 {
		t.Errorf("node-0 against as-is: %+v", r)
	}
	if s, ok := a.Spread.Get(); !ok || !s.Differs() || s.Ratio > 0.1 {
		t.Errorf("node-0's spread: %+v", s)
	}
	if v.Arms[0].Against.Known() || a.MajorFaults.Known() || a.User.Or(0) != 0.50025 {
		t.Errorf("%+v", a)
	}
}

// A slower placement is chosen for timings if it is steadier by a relevant amount, not
// by a negligible one.
func TestDecisionVariationSteadyEnough(t *testing.T) {
	for _, c := range []struct {
		spread float64 // distance of node-0's runs from 1
		want   string
	}{{0.003, "node-0"}, {0.009, "node-0"}, {0.02, "interleave"}} {
		v := Variation{Seed: 1, Arms: []Placed{placed("as-is", nil, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7)}}
		var near, steady []float64
		for i := range 8 {
			sign := float64(1 - 2*(i%2))
			near = append(near, 1+sign*c.spread*(0.7+0.03*float64(i)))
			steady = append(steady, 1.3*(1+sign*0.0001*(0.7+0.03*float64(i))))
		}
		v.Arms = append(v.Arms, placed("node-0", []string{"--nodes", "0"}, near...), placed("interleave", []string{"--nodes", "0-1"}, steady...))
		v.Judge()
		if d := v.Verdict; d.ForRepeatable != c.want || d.Steadiest != "interleave" || len(d.SteadiestTies) != 0 || d.Fastest != "node-0" {
			t.Errorf("node-0 varies by some %g: %+v", c.spread, d)
		}
	}
}

// Arms that differ only by noise are called a tie, and few runs support no further
// claim.
func TestDecisionVariationNoise(t *testing.T) {
	v := Variation{Seed: 1, Arms: []Placed{
		placed("as-is", nil, 1.00, 1.05, 0.98, 1.02), placed("node-0", []string{"--nodes", "0"}, 0.99, 1.04, 1.00, 1.01),
	}}
	v.Judge()
	if d := v.Verdict; len(d.FastestTies) != 1 || len(d.SteadiestTies) != 1 || !d.FewForSpread || d.ForRepeatable != "node-0" {
		t.Errorf("%+v", d)
	}
	one := Variation{Arms: []Placed{placed("as-is", nil, 0.001, 0.002)}}
	if one.Judge(); one.Verdict.ForRepeatable != "" || !one.Verdict.BelowStartUp || one.Verdict.RepeatableLine != nil {
		t.Errorf("%+v", one.Verdict)
	}
	none := Variation{}
	if none.Judge(); none.Verdict.Fastest != "" {
		t.Errorf("%+v", none.Verdict)
	}
}
