// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/golden"
	"homenode/internal/migration"
	"homenode/internal/profile"
	"homenode/internal/render/words"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

// The behaviour of Step over six thousand random windows, as it was before its
// sentences were moved elsewhere: digests of states, steps and outcomes, without
// figures' sources and sentences.
func TestDigests(t *testing.T) {
	moves, waits := 0, 0
	var got strings.Builder
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		h, cfg := newHost(2+r.IntN(3)), randomConfig(r)
		if seed%2 == 0 {
			cfg.Profile = randomProfile(r, h)
		}
		var st State
		sum := sha256.New()
		for range 40 {
			disturb(r, h)
			w, actions := h.Window(), randomActions(r)
			for i := range actions {
				actions[i].Reason = action.Reason{Rule: "test", Workload: actions[i].Workload}
			}
			before := jsonOf(t, st, w, actions)
			next, steps, outcomes := Step(h.Machine, cfg, st, actions, w)
			if jsonOf(t, st, w, actions) != before {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			checkReasons(t, next, outcomes)
			fmt.Fprintln(sum, wordless(t, next, steps, outcomes))
			for _, s := range steps {
				if s.Kind == action.MovePages {
					moves++
				}
			}
			if slices.ContainsFunc(next.Jobs, func(j Job) bool { return j.Waiting }) {
				waits++
			}
			h.Apply(steps)
			h.Report(outcomes...)
			st = next
		}
		fmt.Fprintf(&got, "%d %x\n", seed, sum.Sum(nil))
	}
	if moves < 500 || waits < 500 {
		t.Errorf("%d moves, %d windows with waiting: too little was compared", moves, waits)
	}
	golden.Check(t, filepath.Join("testdata", "digests.sha256"), []byte(got.String()))
}

// checkReasons: each reason has all figures of its sentence.
func checkReasons(t *testing.T, st State, outcomes []action.Outcome) {
	t.Helper()
	var all []action.Reason
	for _, j := range st.Jobs {
		all = append(all, j.Why)
		if v, ok := j.Pays.Get(); ok {
			all = append(all, v.Sum(), v.Short())
		}
	}
	for _, o := range outcomes {
		all = append(all, o.Why)
	}
	for _, why := range append(all, News(State{}, st, outcomes)...) {
		if says := words.Sentence(why); why.Rule != "" && (!words.Has(why.Rule) || strings.ContainsAny(says, "{}[]")) {
			t.Fatalf("%s lacks a figure of its sentence: %q", why.Rule, says)
		}
	}
}

// wordless is what was decided.
func wordless(t *testing.T, st State, steps []action.Step, outcomes []action.Outcome) string {
	rules := []string{}
	plain := func(why *action.Reason) {
		rules = append(rules, why.Rule+" "+why.Workload)
		*why = action.Reason{}
	}
	st.Jobs, st.Isolated, steps, outcomes = slices.Clone(st.Jobs), slices.Clone(st.Isolated), slices.Clone(steps), slices.Clone(outcomes)
	for i := range st.Jobs {
		j := &st.Jobs[i]
		plain(&j.Reason)
		if j.Stage != StageRestoring && j.Stage != StageDrifted { // these always have one
			rules = append(rules, fmt.Sprint(j.Why.Rule != ""))
		}
		j.Why = action.Reason{}
		if v, ok := j.Pays.Get(); ok {
			figures := migration.Verdict{Answer: v.Answer, Bytes: v.Bytes, Gain: v.Gain, Cost: v.Cost}
			figures.Gain.From, figures.Cost.From = "", ""
			j.Pays = unit.Some(figures)
		}
	}
	for i := range st.Isolated {
		plain(&st.Isolated[i].Reason)
	}
	for i := range steps {
		plain(&steps[i].Reason)
	}
	for i := range outcomes {
		plain(&outcomes[i].Step.Reason)
		outcomes[i].Why = action.Reason{}
	}
	return jsonOf(t, rules, st, steps, outcomes)
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
