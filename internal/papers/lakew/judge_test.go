// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"fmt"
	"strings"
	"testing"

	"homenode/internal/policy/vmmap"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"

	"homenode/internal/sim/runner"
	"homenode/internal/unit"
)

// speeds gives the speeds of a hand-made result: by policy, application, size and seed.
type speeds func(policy, app, size string, seed uint64) float64

// result makes a result of the first population on the paper's machine.
func result(seeds int, of speeds) arena.Result {
	r := arena.Result{Schema: arena.Schema, Against: runner.None}
	for seed := range uint64(seeds) {
		r.Seeds = append(r.Seeds, seed+1)
	}
	for _, policy := range policies {
		for _, seed := range r.Seeds {
			c := arena.Cell{Machine: catalog.Torus, Mix: firstMix, Policy: policy, Seed: seed}
			for _, v := range first.vms() {
				c.Apps = append(c.Apps, arena.App{
					ID: "/" + v.name(), Service: v.app, Threads: v.size.Cores, LocalRatio: 0.5,
					Ops: of(policy, v.app, v.size.Name, seed), CPUPerOp: 1e-3,
				})
			}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

// asPublished has the paper's factors, and its spreads.
func asPublished(policy, app, size string, seed uint64) float64 {
	factor, spread := 1.0, 0.6
	for _, t := range theirs {
		if t.app != app || policy == runner.None || policy == runner.NUMABalancing {
			continue
		}
		if factor, spread = t.ipc, 0.02; policy == runner.SMMPI {
			factor = t.mpi
		}
		if size == "large" {
			factor /= 2
		}
	}
	if app == "neo4j" && policy != runner.None && policy != runner.NUMABalancing {
		factor, spread = 50, 0.02
	}
	if app == "mpegaudio" && policy != runner.None && policy != runner.NUMABalancing {
		factor, spread = 2, 0.02
	}
	return 100 * factor * (1 + spread*float64(int(seed)%3-1))
}

// aCurve has the paper's shape.
var aCurve = []Point{
	{"mpegaudio", 10, 100, 0}, {"mpegaudio", 16, 94, 0.06}, {"mpegaudio", 22, 91, 0.09}, {"mpegaudio", 160, 86, 0.14}, {"mpegaudio", 200, 84, 0.16},
	{"derby", 10, 100, 0}, {"derby", 200, 10, 0.9},
}

// asMeasured has the published classes, all of them inferred.
var asMeasured = measured{curve: aCurve, guesses: someGuesses()}

func someGuesses() (all []Guess) {
	for _, app := range Applications {
		v := vmmap.Verdict{Class: published[app][0], Sensitive: unit.Some(true)}
		all = append(all, Guess{App: app, Truth: catalog.Finding{Class: v.Class, Sensitive: v.Sensitive}, Spread: v, Homed: v})
	}
	return all
}

func verdicts(rows []arena.Row) map[string]arena.Verdict {
	all := map[string]arena.Verdict{}
	for _, r := range rows {
		all[r.Statement] = r.Verdict
	}
	return all
}

func find(t *testing.T, rows []arena.Row, start string) arena.Row {
	t.Helper()
	for _, r := range rows {
		if strings.HasPrefix(r.Statement, start) {
			return r
		}
	}
	t.Fatalf("no row about %q", start)
	return arena.Row{}
}

// The paper's own figures confirm each statement that can be tested.
func TestJudgePublished(t *testing.T) {
	rows := judgeWith(result(6, asPublished), asMeasured)
	for _, r := range rows {
		switch {
		case r.Paper == "" || r.Statement == "" || r.Theirs == "" || r.Ours == "" || r.Sentence == "":
			t.Errorf("%+v: something is not said", r)
		case r.Verdict == arena.CannotTest && r.Ours != "–":
			t.Errorf("%+v: a figure that cannot be tested", r)
		case strings.HasPrefix(r.Statement, "Stream in medium"): // the factor is 105 for small and for medium VMs here
		case r.Verdict == arena.NotConfirmed && !strings.HasPrefix(r.Statement, "Stream in"):
			t.Errorf("not confirmed: %+v", r)
		}
	}
	if n := len(verdicts(rows)); n != len(rows) || n < 15 {
		t.Errorf("%d statements in %d rows", n, len(rows))
	}
}

// The target is the paper's ordering.
func TestTargets(t *testing.T) {
	for _, r := range []arena.Result{result(6, asPublished), {}} {
		var got []string
		for _, row := range judgeWith(r, asMeasured) {
			if row.Target {
				start, _, _ := strings.Cut(row.Statement, " ")
				got = append(got, start)
			}
		}
		if text := strings.Join(got, " "); text != "Linux's SM-IPC Small Run-time" {
			t.Errorf("targets: %s", text)
		}
	}
}

// Where policies make no difference, only the statement that they are alike is confirmed.
func TestJudgeNoDifference(t *testing.T) {
	rows := judgeWith(result(4, func(_, _, _ string, seed uint64) float64 { return 100 + float64(seed) }), asMeasured)
	for start, want := range map[string]arena.Verdict{
		"Linux's default": arena.NotConfirmed, "SM-IPC and SM-MPI": arena.Confirmed, "On the average": arena.NotConfirmed,
		"derby": arena.NotConfirmed, "Small and medium": arena.NotConfirmed, "Run-time": arena.NotConfirmed, "Which": arena.NotConfirmed,
	} {
		if r := find(t, rows, start); r.Verdict != want {
			t.Errorf("%+v: want %s", r, want)
		}
	}
}

// One bad seed refutes "far slower".
func TestJudgeWorstSeed(t *testing.T) {
	rows := judgeWith(result(5, func(policy, app, size string, seed uint64) float64 {
		if seed == 3 && policy == runner.SMMPI {
			return 110
		}
		return asPublished(policy, app, size, 1)
	}), asMeasured)
	if r := find(t, rows, "Linux's default"); r.Verdict != arena.NotConfirmed {
		t.Errorf("%+v", r)
	}
}

// What is not in the result, or not on the paper's machine, is unknown and gets no verdict.
func TestJudgeNothing(t *testing.T) {
	elsewhere := result(3, asPublished)
	for i := range elsewhere.Cells {
		elsewhere.Cells[i].Machine = "another"
	}
	for _, r := range []arena.Result{{}, elsewhere} {
		for _, row := range judgeWith(r, measured{why: "there is none"}) {
			if row.Verdict != arena.CannotTest || row.Ours != "–" || row.Sentence == "" {
				t.Errorf("%+v", row)
			}
		}
	}
}

// A VM that did nothing under Linux has no factor. The factor must not become infinite.
func TestJudgeZero(t *testing.T) {
	rows := judgeWith(result(3, func(policy, app, size string, seed uint64) float64 {
		if app == "sor" && policy == runner.None {
			return 0
		}
		return asPublished(policy, app, size, seed)
	}), asMeasured)
	for _, r := range rows {
		if s := fmt.Sprint(r); strings.Contains(s, "Inf") || strings.Contains(s, "NaN") {
			t.Errorf("%+v", r)
		}
	}
	if r := find(t, rows, "sor"); r.Verdict != arena.CannotTest {
		t.Errorf("%+v", r)
	}
}

// The spread is a sample's: over runs in all seeds and over the group's VMs.
func TestSpread(t *testing.T) {
	g := &group{runs: map[string][]run{"a": {{speed: 1}, {speed: 2}, {speed: 3}}, "b": {{speed: 1}, {speed: 2}}}}
	if s, ok := g.spread("a"); !ok || s != 0.5 {
		t.Errorf("%g %v, want 0.5", s, ok)
	}
	if _, ok := g.spread("b"); ok {
		t.Error("two runs have a spread")
	}
}

func TestConcordance(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{3, 2, 1}, []float64{30, 20, 10}, 1},
		{[]float64{3, 2, 1}, []float64{1, 2, 3}, 0},
		{[]float64{3, 2, 2}, []float64{9, 1, 5}, 1}, // a tie has no order
	} {
		if got := concordance(c.a, c.b); got != c.want {
			t.Errorf("%v %v: %g, want %g", c.a, c.b, got, c.want)
		}
	}
}
