// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim/detmath"
)

// The day's load is 1 at its peak, Low half a day later, and the mean in between.
func TestCurve(t *testing.T) {
	c := &clock{midnight: 20 * time.Hour}
	d := &DemandSpec{Low: 0.4, Peak: 20 * time.Hour}
	for hours, want := range map[int64]float64{0: 1, 12: 0.4, 6: 0.7, 240: 1} {
		at, gain := c.curve(d, 60*hours)
		next, _ := c.curve(d, 60*hours+1)
		near(t, fmt.Sprintf("%d hours after the peak", hours), at, want, 1e-12)
		near(t, "a minute later", at+gain, next, 1e-12)
	}
	at, gain := c.curve(&DemandSpec{}, 0)
	near(t, "without a low", at+gain, 1, 0)
}

// Noise has a mean of 1 and the configured deviation.
func TestNoise(t *testing.T) {
	var n noise
	n.start(1, "/a", 0.3, 0)
	sum, squares, count := 0.0, 0.0, 0.0
	for knot := range int64(20000) {
		x, _ := n.line(knot)
		x = math.Exp(x)
		sum, squares, count = sum+x, squares+x*x, count+1
	}
	mean := sum / count
	near(t, "mean", mean, 1, 0.03)
	near(t, "deviation", math.Sqrt(squares/count-mean*mean), 0.3, 0.1)
	near(t, "e^-1/5", keep, detmath.Exp(-0.2), 0)
}

// The closed forms and the series agree with sums of small pieces.
func TestExpMoments(t *testing.T) {
	for _, u := range []float64{-6, -1.01, -1, -0.3, 0, 1e-9, 0.7, 1, 1.01, 5} {
		one, s := 0.0, 0.0
		const pieces = 20000
		for i := range pieces {
			at := (float64(i) + 0.5) / pieces
			one += math.Exp(u*at) / pieces
			s += at * math.Exp(u*at) / pieces
		}
		gotOne, gotS := expMoments(u)
		near(t, fmt.Sprintf("of e^%vs", u), gotOne, one, 1e-7)
		near(t, fmt.Sprintf("of s e^%vs", u), gotS, s, 1e-7)
	}
}

// moody has all that a demand can have: a curve, noise, phases that end within steps, and
// an arrival within a minute.
func moody() Spec {
	s := serving("feed", 2, 200)
	s.Start = StartSpec{CPUs: set.FromCPUs(0, 1), Bind: set.FromNodes(0)}
	s.Demand.Noise, s.Demand.Low, s.Demand.Peak = 0.5, 0.3, 13*time.Hour
	s.Phases = []PhaseSpec{{Lasts: 7777 * time.Millisecond, Rate: 0.3}, {Lasts: 95 * time.Second, Rate: 1.7}}
	s.Arrive = 1234 * time.Millisecond
	return s
}

// The demand is a function of time and seed, however the time is cut into steps.
func TestDemandWhateverTheStep(t *testing.T) {
	whole := world(t, testConfig(t, moody()))
	whole.Config.Step = time.Hour
	whole.Run(time.Hour)
	want := whole.Truth()[0].Asked
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := world(t, testConfig(t, moody()))
		w.Config.Step = 40 * time.Second
		for w.Now() < time.Hour {
			w.Run(min(time.Hour-w.Now(), time.Duration(r.Int64N(int64(100*time.Second))+1)))
		}
		near(t, fmt.Sprintf("asked, cut by seed %d", seed), w.Truth()[0].Asked, want, 1e-9)
	}
	// The reference: small pieces of the formula itself.
	const piece = 10 * time.Millisecond
	sum, n := 0.0, noise{}
	n.start(1, "/feed", 0.5, moody().Arrive)
	for at := moody().Arrive + piece/2; at < time.Hour; at += piece {
		knot, spec := int64(at/time.Minute), moody()
		f := float64(at-time.Duration(knot)*time.Minute) / float64(time.Minute)
		x, slope := n.line(knot)
		c, gain := whole.curve(&spec.Demand, knot)
		sum += 200 * piece.Seconds() * math.Exp(x+slope*f) * (c + gain*f) * spec.Phases[phaseAt(spec.Phases, at-spec.Arrive)].Rate
	}
	near(t, "asked", want, sum, 1e-4)
}

// Others that come and go in the middle of steps do not change the demand.
func TestOneMoreMidStep(t *testing.T) {
	more := chasing("a", 2)
	more.Start = StartSpec{CPUs: set.FromCPUs(2, 3), Bind: set.FromNodes(1)}
	more.Arrive, more.Depart = 17300*time.Millisecond, 200*time.Second+1
	alone, both := world(t, testConfig(t, moody())), world(t, testConfig(t, moody(), more))
	alone.Config.Step, both.Config.Step = 30*time.Second, 30*time.Second
	for range 10 {
		alone.Run(30 * time.Second)
		both.Run(30 * time.Second)
		truths := both.Truth()
		one, two := alone.Truth()[0], truths[len(truths)-1]
		near(t, "asked with another", two.Asked, one.Asked, 1e-9)
		near(t, "CPU time with another", two.CPUSeconds, one.CPUSeconds, 1e-3)
	}
}

func TestPhaseAt(t *testing.T) {
	phases := []PhaseSpec{{Lasts: time.Hour}, {Lasts: 2 * time.Hour}}
	for age, want := range map[time.Duration]int{0: 0, 59 * time.Minute: 0, time.Hour: 1, 3 * time.Hour: 0, 4 * time.Hour: 1} {
		if got := phaseAt(phases, age); got != want {
			t.Errorf("at %v: phase %d, want %d", age, got, want)
		}
	}
}
