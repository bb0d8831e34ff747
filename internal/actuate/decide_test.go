// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"homenode/internal/action"
	"homenode/internal/migration"
	"homenode/internal/profile"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

// Decide is Step without words: over thousands of random windows one chain of each,
// and each from the other's states, do the same.
func TestDecideIsStep(t *testing.T) {
	moves, waits := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		h, cfg := newHost(2+r.IntN(3)), randomConfig(r)
		if seed%2 == 0 {
			cfg.Profile = randomProfile(r, h)
		}
		var spoken, silent State
		for range 40 {
			disturb(r, h)
			w, wishes := h.Window(), randomWishes(r)
			for i := range wishes {
				wishes[i].Reason = action.Reason{Rule: "test", Workload: wishes[i].Workload, Summary: "because"}
			}
			before := jsonOf(t, spoken, silent, w, wishes)
			next, steps, told := Step(h.Machine, cfg, spoken, wishes, w)
			quiet, quietSteps, quietTold := Decide(h.Machine, cfg, silent, wishes, w)
			if jsonOf(t, spoken, silent, w, wishes) != before {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			same(t, next, quiet, steps, quietSteps, told, quietTold)
			crossed, crossedSteps, crossedTold := Decide(h.Machine, cfg, spoken, wishes, w)
			same(t, next, crossed, steps, crossedSteps, told, crossedTold)
			crossed, crossedSteps, crossedTold = Step(h.Machine, cfg, silent, wishes, w)
			same(t, next, crossed, steps, crossedSteps, told, crossedTold)
			for _, s := range steps {
				if s.Kind == action.MovePages {
					moves++
				}
			}
			if slices.ContainsFunc(next.Jobs, func(j Job) bool { return j.Waiting }) {
				waits++
			}
			h.Apply(steps)
			h.Report(told...)
			spoken, silent = next, quiet
		}
	}
	if moves < 500 || waits < 500 {
		t.Errorf("%d moves, %d windows with waiting: too little was compared", moves, waits)
	}
}

// same compares all but words.
func same(t *testing.T, a, b State, stepsA, stepsB []action.Step, toldA, toldB []action.Outcome) {
	t.Helper()
	for i := range stepsA {
		if i < len(stepsB) && stepsA[i].Reason.Rule != stepsB[i].Reason.Rule {
			t.Fatalf("%v for %s, %v for %s", stepsA[i], stepsA[i].Reason.Rule, stepsB[i], stepsB[i].Reason.Rule)
		}
	}
	wordless := func(st State, steps []action.Step, told []action.Outcome) string {
		st.Jobs, steps, told = slices.Clone(st.Jobs), slices.Clone(steps), slices.Clone(told)
		for i := range st.Jobs {
			j := &st.Jobs[i]
			if (j.Why == "") != (a.Jobs[i].Why == "") {
				t.Fatalf("%s: Why is %q and %q", j.Workload, j.Why, a.Jobs[i].Why)
			}
			j.Why = ""
			if v, ok := j.Pays.Get(); ok {
				figures := migration.Verdict{Answer: v.Answer, Bytes: v.Bytes, Gain: v.Gain, Cost: v.Cost}
				figures.Gain.From, figures.Cost.From = "", ""
				j.Pays = unit.Some(figures)
			}
		}
		for i := range steps {
			steps[i].Reason = action.Reason{}
		}
		return jsonOf(t, st, steps, told)
	}
	if len(a.Jobs) != len(b.Jobs) {
		t.Fatalf("%d and %d jobs", len(a.Jobs), len(b.Jobs))
	}
	if one, other := wordless(a, stepsA, toldA), wordless(b, stepsB, toldB); one != other {
		t.Fatalf("Decide and Step part ways:\n%s\n%s", one, other)
	}
}

func randomProfile(r *rand.Rand, h *windowtest.Host) *profile.Profile {
	p := &profile.Profile{How: unit.HowModelled}
	for _, from := range h.Machine.Nodes {
		for _, to := range h.Machine.Nodes {
			latency := profile.FigureOf([]float64{80 + 20*float64(r.IntN(5))})
			p.Latency = append(p.Latency, profile.PairFigure{From: from.ID, To: to.ID, Figure: latency})
			if r.IntN(3) > 0 {
				p.Migration = append(p.Migration, profile.Migration{From: from.ID, To: to.ID, PageSize: 4 * unit.KiB, PerPage: latency})
			}
		}
	}
	return p
}

// What is told of our own goes by words where a figure is unknown, too.
func TestDecideSaysTheRule(t *testing.T) {
	m, st, w := steady()
	_, steps, _ := Decide(m, DefaultConfig(), st, nil, w)
	_, want, _ := Step(m, DefaultConfig(), st, nil, w)
	if len(steps) != len(want) {
		t.Fatalf("%v, want %v", steps, want)
	}
	for i, s := range steps {
		if job, _ := st.Job(s.Workload); !reflect.DeepEqual(s.Reason, job.Reason) || s.Reason.Rule != want[i].Reason.Rule {
			t.Errorf("%v: its reason is %v", s, s.Reason)
		}
	}
}
