// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"slices"
	"testing"

	"homenode/internal/papers/lakew"
	"homenode/internal/papers/rao"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/scenario"
	"homenode/internal/unit"
)

// made is a result of MAO's machine and one mix, with one app: each policy's ops by seed.
func made(against string, ops map[string][]float64, order ...string) arena.Result {
	const machine = "dual-skylake"
	r := arena.Result{Schema: arena.Schema, How: "modelled", Name: "made", Against: against, Machines: []arena.Named{{Name: machine}}, Mixes: []arena.Named{{Name: "x"}}}
	for i := range ops[against] {
		r.Seeds = append(r.Seeds, uint64(i+1))
	}
	for _, p := range order {
		r.Policies = append(r.Policies, arena.Named{Name: p})
		for i, o := range ops[p] {
			r.Cells = append(r.Cells, arena.Cell{Machine: machine, Mix: "x", Policy: p, Seed: r.Seeds[i], LocalRatio: 0.5, Apps: []arena.App{{ID: "/a", Service: "a", Threads: 1, Ops: o, CPUPerOp: 1 / o, P99S: 1 / o, Fairness: 1}}})
		}
	}
	return r
}

// Targets are judged by the statistics that are shown.
func TestDecisionTargets(t *testing.T) {
	result := func(hand, brm float64) arena.Result {
		six := func(v, by float64) []float64 { return []float64{v, v * (1 + by), v, v * (1 - by), v, v} }
		r := made(runner.None, map[string][]float64{runner.None: six(100, 0), runner.Hand: six(hand, 0), runner.BRM: six(brm, 0.01)}, runner.None, runner.Hand, runner.BRM)
		r.Mixes[0].Name = doNotCare
		for i := range r.Cells {
			r.Cells[i].Mix = doNotCare
		}
		return r
	}
	for _, c := range []struct {
		r    arena.Result
		want [4]arena.Verdict
		ours [4]string
	}{
		{result(140, 135), [4]arena.Verdict{arena.Confirmed, arena.Confirmed, arena.Confirmed, arena.Confirmed}, [4]string{"-3.6 %", "0.63 %", "+35.0 %", "+35.0 %"}},
		{result(140, 96), [4]arena.Verdict{arena.NotConfirmed, arena.Confirmed, arena.NotConfirmed, arena.NotConfirmed}, [4]string{"-31.4 %", "0.63 %", "-4.0 %", "-4.0 %"}},
		{arena.Result{}, [4]arena.Verdict{arena.CannotTest, arena.CannotTest, arena.CannotTest, arena.CannotTest}, [4]string{"–", "–", "–", "–"}},
	} {
		for i, w := range Targets(c.r) {
			if w.Verdict != c.want[i] || w.Ours != c.ours[i] || !w.Target || w.Sentence == "" {
				t.Errorf("%+v, want %s and %s", w, c.want[i], c.ours[i])
			}
		}
	}
}

func TestDecisionMAO(t *testing.T) {
	six := func(v float64) []float64 { return []float64{v, v * 1.01, v, v * 0.99, v, v} }
	r := made(runner.NUMABalancing, map[string][]float64{runner.NUMABalancing: six(1), runner.MAOA: six(1.05), runner.MAOB: six(1.1)}, runner.NUMABalancing, runner.MAOA, runner.MAOB)
	for i := range r.Cells {
		switch c := &r.Cells[i]; c.Policy {
		case runner.NUMABalancing:
			c.LocalRatio = 0.55
		case runner.MAOA:
			c.Unbinds = 3
		default:
			c.LocalRatio = 0.9
		}
	}
	want := []arena.Verdict{arena.Confirmed, arena.Confirmed, arena.Confirmed, arena.Confirmed, arena.Confirmed}
	for i, w := range judgeMAO(r) {
		if w.Verdict != want[i] || w.Ours == "–" {
			t.Errorf("%+v", w)
		}
	}
	for i := range r.Cells {
		r.Cells[i].Unbinds, r.Cells[i].LocalRatio = 0, 0.7
	}
	for i, w := range judgeMAO(r) {
		want := []arena.Verdict{arena.NotConfirmed, arena.NotConfirmed, arena.Confirmed, arena.Confirmed, arena.CannotTest}[i]
		if w.Verdict != want || w.Sentence == "" {
			t.Errorf("%+v", w)
		}
	}
	for _, w := range judgeMAO(arena.Result{}) {
		if w.Verdict != arena.CannotTest || w.Sentence == "" {
			t.Errorf("%+v", w)
		}
	}
	r.Rows = judgeMAO(r)
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}

// Each statement appears once. Results replace what is said without runs, and verdicts are
// the results' own.
func TestStatements(t *testing.T) {
	bare := Statements(nil, nil)
	seen := map[string]bool{}
	count := map[string]int{}
	for _, w := range bare {
		if key := w.Paper + w.Statement; seen[key] || w.Statement == "" || w.Sentence == "" {
			t.Errorf("%+v", w)
		} else {
			seen[key] = true
		}
		count[w.Paper]++
	}
	if len(count) != 4 || count[maoPaper] != 5 || count[rao.Paper] < 15 || count[lakew.Paper] < 15 || count[arena.ToReach] != 4 {
		t.Errorf("%v", count)
	}
	stored := arena.Row{Paper: rao.Paper, Statement: "It is so.", Ours: "1", Verdict: arena.NotConfirmed, Sentence: "It was seen."}
	result := scenario.Result{
		Scenario: "x", Seeds: []uint64{1},
		Arms: []scenario.Outcome{
			{Name: "a", Runs: []scenario.Run{{Seed: 1, LocalRatio: 0.9, Services: []scenario.Service{{Name: "web", Ops: 1, LatencyS: 9}}}}},
			{Name: "b", Runs: []scenario.Run{{Seed: 1, LocalRatio: 0.5, Services: []scenario.Service{{Name: "web", Ops: 1, LatencyS: 10}}}}},
		},
		Paper: []scenario.Claim{
			{Figure: "MAO, Feed", Service: "web", Arm: "a", Against: "b", Metric: scenario.Latency, Value: unit.Some(-0.121), Note: "ours waits more"},
			{Figure: "MAO", Arm: "a", Metric: scenario.LocalRatio, Value: unit.Some(0.5776)},
			{Figure: "MAO", Arm: "c", Metric: scenario.LocalRatio},
		},
	}
	var rows []arena.Row
	for _, w := range Statements([]arena.Result{{Rows: []arena.Row{stored}}}, []scenario.Result{result}) {
		if w.Paper == rao.Paper || w.Verdict == arena.NotJudged {
			rows = append(rows, w)
		}
	}
	stored.Section = "slides"
	want := []arena.Row{
		{Paper: "MAO", Section: "Feed", Statement: "The change of latency of web, a against b.", Theirs: "-12.1 %", Ours: "-10.0 % (-10.0 % to -10.0 %, seeds: 1)", Verdict: arena.NotJudged, Sentence: "Scenario x. Ours waits more."},
		{Paper: "MAO", Statement: "The local_ratio of all services under a.", Theirs: "57.76 %", Ours: "90.00 % (90.00 % to 90.00 %, seeds: 1)", Verdict: arena.NotJudged, Sentence: "Scenario x."},
		{Paper: "MAO", Statement: "The local_ratio of all services under c.", Theirs: "–", Ours: "–", Verdict: arena.NotJudged, Sentence: `Scenario x. No arm of this result is called "c".`},
		stored,
	}
	if !slices.Equal(rows, want) {
		t.Errorf("%+v\n%+v", rows, want)
	}
}

// Every result that can be read can be judged.
func FuzzJudge(f *testing.F) {
	r := made(runner.None, map[string][]float64{runner.None: {1, 2}, runner.Hand: {2, 2}, runner.BRM: {3, 2}}, runner.None, runner.Hand, runner.BRM)
	data, err := arena.Encode(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := arena.Decode(data)
		if err != nil {
			return
		}
		r.Rows = append(judgeMAO(r), Targets(r)...)
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
	})
}
