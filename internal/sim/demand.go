// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"homenode/internal/sim/detmath"
)

const (
	// knotEvery is the distance between knots of the demand, from the world's start.
	// Between knots, the logarithm of the noise and the day's curve are straight lines.
	knotEvery = time.Minute
	// noiseKnots is the number of knots after which 63 % of a deviation is forgotten. It is
	// a choice: loads drift over minutes.
	noiseKnots = 5
)

// asking is the demand on a workload and the queue of its requests.
type asking struct {
	Spec    *Spec
	Demand  Demand  // of this step
	rate    float64 // requests per second that arrive in this step
	noise   noise
	station station // serves them in this step
	queue   float64 // requests that wait for CPU time
	waits   float64 // expected number that wait, including those that wait by chance
	late    float64 // seconds since there was last no backlog
	refused float64 // share of the requests that find the queue full
	stall   float64 // seconds that it must still stand still
	calls   float64 // seconds of one such stop; 0: all at once
	call    float64 // the same for this step
	tail    tail    // of latencies, since the last Truth
}

// Demand is what is requested of a workload in one step.
type Demand struct {
	Closed bool    // a closed loop
	Asked  float64 // arriving requests; none in a closed loop
	Duty   float64 // in a closed loop: share of its threads that take part
	Phase  int
	Still  float64 // seconds that it stands still
}

// stop makes it stand still for this many seconds from the next step on, in stops of call.
func (a *asking) stop(seconds, call float64) {
	a.stall += seconds
	a.calls = max(a.calls, call)
}

// age is the time since its arrival.
func (a *asking) age(now time.Duration) time.Duration { return now - a.Spec.Arrive }

// clock is a world's hour of the day.
type clock struct {
	midnight time.Duration // before the start
	hour     time.Duration // time after a peak; cosines holds the values at it and a knot later
	cosines  [2]float64
}

// noise is a first-order lognormal process with mean 1.
type noise struct {
	random  detmath.Random
	sigma   float64
	knot    int64
	a, b    float64 // logarithms at knot and at the next one
	started bool
}

// start gives the workload a stream of its own, from the knot before its arrival on. One
// more workload changes nothing for others.
func (n *noise) start(seed uint64, id string, deviation float64, arrive time.Duration) {
	if deviation <= 0 {
		return
	}
	n.started, n.knot = true, int64(arrive/knotEvery)
	n.random = detmath.NewRandom(seed, id, "demand")
	n.sigma = math.Sqrt(detmath.Log(1 + deviation*deviation))
	n.a = n.sigma * n.random.Normal()
	n.b = n.next(n.a)
}

// keep is the part of a deviation that remains at the next knot: e^(-1/noiseKnots).
var keep = detmath.Exp(-1.0 / noiseKnots)

func (n *noise) next(x float64) float64 {
	return keep*x + n.sigma*math.Sqrt(1-keep*keep)*n.random.Normal()
}

// line is the factor's logarithm at a knot, and its increase to the next knot. Knots must
// not go back.
func (n *noise) line(knot int64) (at, slope float64) {
	if !n.started {
		return 0, 0
	}
	for ; n.knot < knot; n.knot++ {
		n.a, n.b = n.b, n.next(n.b)
	}
	return n.a - n.sigma*n.sigma/2, n.b - n.a
}

// Ask sets the demand of the coming step.
func (w *World) Ask(wl *Workload, step time.Duration) { wl.ask(&w.clock, w.now, step) }

// ask takes the integral of the demand's rate, so it does not matter where a step ends. The
// phase, and with it the cost of an operation, is that of the step's middle.
func (a *asking) ask(c *clock, now, step time.Duration) {
	d, dt := &a.Spec.Demand, step.Seconds()
	a.Demand = Demand{Closed: d.Rate == 0, Phase: phaseAt(a.Spec.Phases, a.age(now+step/2))}
	for at, end := now, now+step; at < end; {
		till, factor := a.piece(at, end)
		seconds := (till - at).Seconds()
		a.Demand.Duty += min(1, factor) * (seconds / dt)
		if !a.Demand.Closed {
			a.Demand.Asked += d.Rate * factor * a.curved(c, at, seconds)
		}
		at = till
	}
	a.rate = a.Demand.Asked / dt
	a.standStill(dt)
}

// piece is the time until which one formula gives the demand, and its phase's factor.
func (a *asking) piece(at, end time.Duration) (till time.Duration, factor float64) {
	if factor = 1; len(a.Spec.Phases) > 0 {
		phase, left := phaseOf(a.Spec.Phases, a.age(at))
		factor, end = orOne(a.Spec.Phases[phase].Rate), min(end, at+left)
	}
	if a.noise.started || a.Spec.Demand.Low != 0 {
		end = min(end, (at/knotEvery+1)*knotEvery)
	}
	return end, factor
}

// curved is the integral of curve × noise over a piece, in seconds: the integral of e^(x +
// αf) (c + γf) over a part h of the way f between two knots,
//
//	h e^(x₁) (c₁ E₁(αh) + γh E₂(αh)),   E₁(u) = ∫ e^(us) ds,   E₂(u) = ∫ s e^(us) ds,   s = 0 … 1.
func (a *asking) curved(of *clock, at time.Duration, seconds float64) float64 {
	knot := int64(at / knotEvery)
	c, gain := of.curve(&a.Spec.Demand, knot)
	x, slope := a.noise.line(knot)
	f := float64(at-time.Duration(knot)*knotEvery) / float64(knotEvery)
	h := seconds / knotEvery.Seconds()
	c += gain * f
	if slope == 0 && x == 0 {
		return seconds * (c + gain*h/2)
	}
	e1, e2 := expMoments(slope * h)
	return seconds * detmath.Exp(x+slope*f) * (c*e1 + gain*h*e2)
}

// expMoments are the integrals of e^(us) and of s e^(us) over s from 0 to 1. Near 0, where
// the closed forms cancel, it uses their series, to 1e-16.
func expMoments(u float64) (one, s float64) {
	if math.Abs(u) > 1 {
		e := detmath.Exp(u)
		return (e - 1) / u, (1 + e*(u-1)) / (u * u)
	}
	term := 1.0 // uⁿ/n!
	for n := 1.0; n < 19 && math.Abs(term) > 1e-17; n++ {
		one += term / n
		s += term / (n + 1)
		term *= u / n
	}
	return one, s
}

// standStill reduces the time that it must still stand still.
func (a *asking) standStill(dt float64) {
	a.Demand.Still = min(a.stall, dt)
	if a.call = a.calls; a.calls == 0 {
		a.call = a.Demand.Still
	}
	if a.stall -= a.Demand.Still; a.stall == 0 {
		a.calls = 0
	}
}

// curve is the load at a knot, as a share of the top, and its change to the next knot: a
// raised cosine of the hour of the day between Low and 1.
func (c *clock) curve(d *DemandSpec, knot int64) (at, gain float64) {
	if d.Low == 0 {
		return 1, 0
	}
	if hour := c.midnight + time.Duration(knot)*knotEvery - d.Peak; hour != c.hour || c.cosines == [2]float64{} { // most have the same peak
		c.hour = hour
		for i := range c.cosines {
			of := ((hour+time.Duration(i)*knotEvery)%day + day) % day
			c.cosines[i] = cosTurn(float64(of) / float64(day))
		}
	}
	at = d.Low + (1-d.Low)*(1+c.cosines[0])/2
	return at, (1 - d.Low) * (c.cosines[1] - c.cosines[0]) / 2
}

// sinceMidnight is the time since the start of its day, in UTC.
func sinceMidnight(t time.Time) time.Duration {
	t = t.UTC()
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute +
		time.Duration(t.Second())*time.Second + time.Duration(t.Nanosecond())
}

// cosTurn is the cosine of x turns, 0 ≤ x ≤ 1: mirrored into the first quarter, then by its
// Taylor series, to 1e-15.
func cosTurn(x float64) float64 {
	sign := 1.0
	if x > 0.5 {
		x = 1 - x
	}
	if x > 0.25 {
		x, sign = 0.5-x, -1
	}
	y := 2 * math.Pi * x
	y2 := y * y
	sum := 1.0
	for i := 22; i > 0; i -= 2 {
		sum = 1 - y2*sum/float64(i*(i-1))
	}
	return sign * sum
}

// phaseAt is the phase at an age.
func phaseAt(phases []PhaseSpec, age time.Duration) int {
	phase, _ := phaseOf(phases, age)
	return phase
}

// phaseOf is the phase at an age, and how much of it is left.
func phaseOf(phases []PhaseSpec, age time.Duration) (phase int, left time.Duration) {
	if len(phases) == 0 {
		return 0, math.MaxInt64
	}
	var circle time.Duration
	for _, p := range phases {
		circle += p.Lasts
	}
	age = max(0, age) % circle
	for i, p := range phases {
		if age < p.Lasts {
			return i, p.Lasts - age
		}
		age -= p.Lasts
	}
	return len(phases) - 1, 1
}
