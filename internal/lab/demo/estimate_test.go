// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"homenode/internal/experiment"
)

// host plays a comparison: the time of an arm's model-second, the time around a run,
// and how much slower the host is at a time.
type host struct {
	perModelSecond map[string]float64
	around         float64 // half before, half after
	slower         func(now time.Duration) float64
}

// estimate is one that was shown, with the time that was really left.
type estimate struct {
	now, left, truth time.Duration
	known            bool
	round            int
}

const modelOfTest = 24.0

func (h host) play(repeats int) []estimate {
	var order []string
	for _, r := range experiment.Plan(len(Arms), 0, repeats, 1) {
		order = append(order, Arms[r.Arm])
	}
	e := newEstimator(len(order), modelOfTest)
	now := 20 * time.Second // the time of the boot
	pass := func(seconds float64) { now += time.Duration(seconds * h.slower(now) * float64(time.Second)) }
	var shown []estimate
	show := func() {
		left, ok := e.left(now)
		shown = append(shown, estimate{now: now, left: left, known: ok, round: e.at / len(Arms)})
	}
	show()
	for _, arm := range order {
		e.begin(now)
		pass(h.around / 2)
		for done := 0.0; done <= modelOfTest; done += checkEvery {
			e.step(now, done)
			show()
			if done < modelOfTest {
				pass(checkEvery * h.perModelSecond[arm])
			}
		}
		pass(h.around / 2)
		e.end(now)
	}
	for i := range shown {
		shown[i].truth = now - shown[i].now
	}
	left, ok := e.left(now)
	return append(shown, estimate{now: now, left: left, known: ok})
}

func even(time.Duration) float64 { return 1 }

// off is the error of an estimate, as a share of the whole time.
func off(e estimate, whole time.Duration) float64 {
	return math.Abs(float64(e.left-e.truth)) / float64(whole)
}

func TestDecisionEstimateOnASteadyHost(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := host{perModelSecond: map[string]float64{}, around: 20 * rng.Float64(), slower: even}
		for _, a := range Arms {
			h.perModelSecond[a] = 2 + rng.Float64() // arms differ by up to a half
		}
		shown := h.play(3)
		whole := shown[len(shown)-1].now
		if last := shown[len(shown)-1]; !last.known || last.left != 0 {
			t.Fatalf("at the end: %v left, %v", last.left, last.known)
		}
		known := 0
		for i, e := range shown {
			if !e.known {
				if known > 0 {
					t.Fatalf("estimate %d is unknown after %d that were known", i, known)
				}
				continue
			}
			known++
			limit := 0.30 // one arm stands for all others
			if e.round > 0 {
				limit = 0.12 // every arm was seen once
			}
			if off(e, whole) > limit {
				t.Fatalf("estimate %d: %v left, in truth %v of %v; %+v", i, e.left, e.truth, whole, h)
			}
			if i > 0 && shown[i-1].known {
				if jump := float64(e.left-shown[i-1].left) / float64(whole); math.Abs(jump) > 0.1 {
					t.Fatalf("estimate %d jumps by %.0f %% of the whole: %v, then %v", i, 100*jump, shown[i-1].left, e.left)
				}
			}
		}
		if known < len(shown)-4 {
			t.Fatalf("%d of %d estimates are known", known, len(shown))
		}
	}
}

// From some time on other processes take half of the host. Two runs later the estimate
// is off by at most a quarter of the whole, a round later by a twentieth, and at the end
// it is right.
func TestDecisionEstimateOnAHostThatBecomesBusy(t *testing.T) {
	h := host{perModelSecond: map[string]float64{}, around: 10}
	for i, a := range Arms {
		h.perModelSecond[a] = 3 + 0.2*float64(i)
	}
	for run := range 12 {
		busy := 20*time.Second + time.Duration(float64(run)*91*float64(time.Second))
		h.slower = func(now time.Duration) float64 {
			if now >= busy {
				return 2
			}
			return 1
		}
		shown := h.play(3)
		whole := shown[len(shown)-1].now
		for _, e := range shown {
			limit := 0.25
			if e.now > busy+5*190*time.Second {
				limit = 0.05
			}
			if e.known && e.now > busy+2*190*time.Second && off(e, whole) > limit {
				t.Errorf("busy from run %d on, at %v of %v: %v left, really %v", run, e.now, whole, e.left, e.truth)
			}
		}
		if last := shown[len(shown)-2]; off(last, whole) > 0.01 {
			t.Errorf("busy from run %d on, at the last step: %v left, really %v", run, last.left, last.truth)
		}
	}
}

func TestDecisionEstimateKnowsNothingAtFirst(t *testing.T) {
	e := newEstimator(2, modelOfTest)
	e.begin(0)
	if _, ok := e.left(time.Minute); ok {
		t.Error("the time of a run is known before a part of one")
	}
	e.step(time.Minute, 0)
	if _, ok := e.left(2 * time.Minute); ok {
		t.Error("the time is known before a model-second has passed")
	}
	e.step(3*time.Minute, modelOfTest/2)
	if left, ok := e.left(3 * time.Minute); !ok || left != 9*time.Minute {
		t.Errorf("half of the first of two runs took 3 min, 1 of them before its first model-second: %v left", left)
	}
}

func TestDecodeStep(t *testing.T) {
	for _, s := range []Step{{Stage: StageLoad}, {Stage: StageWarm, Done: 6, Of: 18}, {Stage: StageMeasure, Done: 2, Of: 8}} {
		if got, ok := parseStep(s.line()); !ok || got != s {
			t.Errorf("%q reads %+v", s.line(), got)
		}
	}
	for _, line := range []string{"", "homenode-lab: run arm: no such file", "{", "{}", `{"stage": 3}`} {
		if s, ok := parseStep(line); ok {
			t.Errorf("%q is no step: %+v", line, s)
		}
	}
	m := Mix{Warmup: 18, Measure: 8}
	var at []float64
	for _, s := range []Step{{Stage: StageLoad}, {Stage: StageWarm, Done: 6}, {Stage: StageMeasure, Done: 2}, {Stage: StageEnd}} {
		at = append(at, s.modelSeconds(m))
	}
	if want := []float64{0, 6, 20, 26}; !slices.Equal(at, want) {
		t.Errorf("%v model-seconds, want %v", at, want)
	}
}
