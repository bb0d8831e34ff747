// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"strings"
	"testing"
	"time"
)

// settling changes from one ratio to another until a check, and stays there.
func settling(from, to float64, until, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = to
		if i < until {
			out[i] = from + (to-from)*float64(i)/float64(until)
		}
	}
	return out
}

func TestDecisionSteadyFrom(t *testing.T) {
	noisy := settling(0.9, 0.9, 0, 30)
	for i := range noisy {
		noisy[i] += 0.03 * math.Sin(float64(2*i)) // the mean of three in a row is off by less
	}
	for _, c := range []struct {
		about  string
		ratios []float64
		at     float64
		ok     bool
	}{
		{"from the start", settling(0.9, 0.9, 0, 30), 2, true},
		{"after ten checks", settling(0.2, 0.9, 10, 30), 22, true},
		{"just before the last third", settling(0.2, 0.9, 19, 30), 40, true},
		{"still rising", settling(0.2, 0.9, 30, 30), 0, false},
		{"noisy", noisy, 2, true},
		{"too short to tell", settling(0.9, 0.9, 0, 8), 0, false},
		{"nothing", nil, 0, false},
		{"falls at the end", append(settling(0.9, 0.9, 0, 27), 0.2, 0.2, 0.2), 0, false},
	} {
		at, ok := steadyFrom(c.ratios)
		if ok != c.ok || ok && math.Abs(at-c.at) > checkEvery {
			t.Errorf("%s: steady from %v (%v), want %v (%v)", c.about, at, ok, c.at, c.ok)
		}
	}
}

// pilotRuns: each arm twice, 3 s of the host per model-second and 10 s around.
func pilotRuns(mix Mix, ratios map[string][]float64) []RunResult {
	var runs []RunResult
	for _, arm := range Arms {
		for repeat := range PilotRepeats {
			r := run(arm, repeat, 100+float64(repeat), 0.9, 50, true)
			r.WarmupRatios = ratios[arm]
			r.HostAround = 10
			r.HostSeconds = 10 + 3*(mix.Warmup+mix.Measure)
			runs = append(runs, r)
		}
	}
	return runs
}

func TestDecisionPilot(t *testing.T) {
	mix := judgeMix()
	mix.Warmup, mix.Measure, mix.Repeats = PilotWarmup, 8, PilotRepeats
	still, rising := settling(0.9, 0.9, 0, 30), settling(0.2, 0.9, 30, 30)
	ratios := map[string][]float64{ArmLinux: still, ArmBalancing: rising, ArmNumad: still, ArmHomenode: settling(0.2, 0.9, 6, 30), ArmByHand: still}
	p := NewPilot(mix, Arms, pilotRuns(mix, ratios), 1, 12*time.Minute)
	warmup, ok := p.Warmup.Get()
	if !ok || warmup < 10 || warmup > 16 {
		t.Errorf("warm-up of %v model-s, want that of homenode, the slowest that was steady", warmup)
	}
	// A round is 5 × (10 + 3 × (14 + 8)) s = 380 s: fewer than two fit in 12 min.
	if p.Repeats != 2 || p.Fits != (p.Took <= 12*time.Minute) || p.Took != time.Duration(2*5*(10+3*(warmup+8))*float64(time.Second)) {
		t.Errorf("%d repeats, %v, %v", p.Repeats, p.Took, p.Fits)
	}
	text := p.String()
	for _, want := range []string{"warmup_model_seconds: ", "repeats: 2", "not steady in 60 model-s", "spread of its sensitive services 1.0 %",
		"Not steady at the end of that warm-up: Linux, NUMA balancing on", "make bench-peers"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if more := NewPilot(mix, Arms, pilotRuns(mix, ratios), 1, time.Hour); more.Repeats != 5 || !more.Fits {
		t.Errorf("with an hour: %d repeats", more.Repeats)
	}
	if two := NewPilot(mix, Arms, pilotRuns(mix, ratios), 2, 12*time.Minute); two.Repeats != 3 || two.Took != p.Took/2*3/2 {
		t.Errorf("with two guests at a time: %d repeats in %v, with one %d in %v", two.Repeats, two.Took, p.Repeats, p.Took)
	}
	for arm := range ratios {
		ratios[arm] = rising
	}
	if text := NewPilot(mix, Arms, pilotRuns(mix, ratios), 1, time.Hour).String(); !strings.Contains(text, "Nothing to commit") {
		t.Errorf("nothing is steady, but:\n%s", text)
	}
}
