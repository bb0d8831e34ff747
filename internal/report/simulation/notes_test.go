// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	stdhtml "html"
	"strings"
	"testing"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// One seed without a change is "the same", and not "0% lower".
func TestDecisionChangeWords(t *testing.T) {
	for _, c := range []struct {
		s    scenario.Spread
		of   int
		want string
	}{
		{scenario.Spread{Median: 1, Min: 1, Max: 1, N: 1}, 1, "the same (one seed)"},
		{scenario.Spread{Median: 1 - 1e-9, Min: 1 - 1e-9, Max: 1 - 1e-9, N: 1}, 1, "the same (one seed)"},
		{scenario.Spread{Median: 0.9, Min: 0.9, Max: 0.9, N: 1}, 1, "10.0% lower (one seed)"},
		{scenario.Spread{Median: 0.9, Min: 0.9, Max: 0.9, N: 1}, 3, "10.0% lower (one of 3 seeds)"},
		{scenario.Spread{Median: 0.9, Min: 0.8, Max: 0.95, N: 4}, 5, "10.0% lower (5.0–20.0% over 4 of 5 seeds)"},
		{scenario.Spread{Median: 0.9, Min: 0.8, Max: 0.95, N: 5}, 5, "10.0% lower (5.0–20.0%)"},
	} {
		if got := changeWords(c.s, c.of, false); got != c.want {
			t.Errorf("%+v of %d: %q, want %q", c.s, c.of, got, c.want)
		}
	}
}

// A seed that cannot be compared is not left out silently.
func TestDecisionPartOfTheSeeds(t *testing.T) {
	r := scenarioFixture(t)
	r.Arms[0].Runs[2].Services[1].P99S = 0
	r.Arms[0].Runs[2].Services[1].LatencyS = 0
	out := scenarioText(t, r, render.TextOptions{UTF8: true, Width: 200})
	for _, want := range []string{"(4/5)", "it is of 4 of 5 seeds", "over 4 of 5 seeds"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := scenarioText(t, scenarioFixture(t), render.TextOptions{UTF8: true, Width: 200}); strings.Contains(out, "(4/5)") {
		t.Error("all seeds are there")
	}
}

// Where another arm does better than the oracle, the page says that the oracle is no
// ceiling.
func TestDecisionNoCeiling(t *testing.T) {
	r := scenarioFixture(t)
	r.Arms[1].Policy = handPolicy // mao-a's figures are worse than mao-b's
	for name, out := range map[string]string{"text": scenarioText(t, r, render.TextOptions{UTF8: true, Width: 300}), "page": stdhtml.UnescapeString(scenarioHTML(t, r))} {
		if strings.Count(out, "is no ceiling there") != 1 || !strings.Contains(out, "mao-b does better than mao-a: more of its reads are local (0.931 against 0.815) and an operation takes less CPU time") {
			t.Errorf("%s says nothing of it", name)
		}
	}
	r = scenarioFixture(t)
	r.Arms[2].Policy = handPolicy
	if out := scenarioText(t, r, render.TextOptions{UTF8: true}); strings.Contains(out, "ceiling") {
		t.Error("no arm does better than the best")
	}
}
