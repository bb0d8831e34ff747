// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/detmath"
)

// waiting is the expected number of waiting requests under a constant load:
//
//	dL/dt = rate − capacity + idle,   idle = v g / (L + offset)
//
// It is a diffusion that is reflected at 0 (Abate and Whitt, Transient behavior of
// regulated Brownian motion, 1987): v is half of its variance per second, and idle × L / v
// is 1 in the steady state, and 2/π at the beginning. In between, and in overload, g =
// (2/π)^(1 − x), x = L / L(∞) with the sign of the spare capacity: within 5 % of the exact
// moments. The offset is chosen so that L(∞) is Sakasegawa's. So a queue near saturation
// grows as the root of time, a backlog by the drift alone, and one turns into the other
// smoothly.
type waiting struct {
	station
	rate    float64 // requests per second that arrive
	let     float64 // those of them that find room
	drift   float64 // rate − capacity
	v       float64
	offset  float64
	rest    float64 // number at rest; +Inf: it never rests
	delayed float64 // probability that a request waits, at rest
	room    float64

	number  float64 // number that waits
	backlog float64 // those of them that wait because more arrived than could be done
	late    float64 // seconds since there was no backlog
	area    float64 // requests × seconds
	tail    *tail
	share   float64 // share of the requests that is recorded
	extra   float64 // additional wait of these
}

// waiting starts with an empty queue.
func (q station) waiting(rate, let, room float64) waiting {
	x := waiting{station: q, rate: rate, let: let, room: room, share: 1}
	capacity := q.capacity()
	load := rate / capacity
	x.drift, x.v = rate-capacity, q.varies*capacity
	x.rest, x.offset, x.delayed = math.Inf(1), q.varies*q.power, 1
	if load < 1-1e-9 {
		by := detmath.Pow(load, q.power-1)
		x.delayed = by
		x.rest = q.varies * load * by / (1 - load)
		x.offset = q.varies * (1 - load*by) / (1 - load)
	}
	if share, mean := q.refuses(rate, room); share > 0 {
		x.rest = min(x.rest, mean)
	}
	return x
}

// step computes a step with stops, the first at its start.
func (x *waiting) step(dt, still, call float64) {
	if still <= 0 {
		x.run(dt)
		return
	}
	stops := max(1, math.Round(still/max(call, 1e-9)))
	if stops > mostStops && still < dt {
		x.slower(dt, still, call)
		return
	}
	for range int(min(stops, mostStops)) {
		x.stand(still / stops)
		if still < dt {
			x.run((dt - still) / stops)
		}
	}
}

// slower treats many short stops as a slower server, where each stop has its own late
// requests, λ S²/2 / (1 − ρ).
func (x *waiting) slower(dt, still, call float64) {
	q := x.station
	q.service /= 1 - still/dt
	y := q.waiting(x.rate, x.let, x.room)
	y.number, y.backlog, y.late, y.tail = x.number, x.backlog, x.late, x.tail
	late := min(1, still/dt/max(0.05, 1-x.rate/x.capacity())) // arrive in a stop, or in its aftermath
	y.share = 1 - late
	y.run(dt)
	y.share = late / lateParts
	for i := range lateParts {
		y.extra = call * (float64(i) + 0.5) / lateParts
		y.record(dt, y.number, y.backlog)
	}
	y.area += x.let * dt * late * call / 2
	y.share, y.extra = 1, 0
	*x = y
}

// lateParts: requests that wait for the end of a stop are recorded in this many parts, with
// their waits spread evenly.
const lateParts = 4

// stand is a stop: all arriving requests wait.
func (x *waiting) stand(seconds float64) {
	more := max(0, min(x.rate*seconds, x.room-x.number))
	x.area += (x.number + more/2) * seconds
	x.number += more
	x.backlog += more
	x.late += seconds
}

const (
	// pieces of the time in which a queue is not at rest.
	pieces = 16
	// resting is how many times v / drift² the queue takes to come to rest.
	resting = 16
)

// run is time at full speed, in pieces until the queue is at rest. Short pieces come first,
// as a queue grows by the root of time.
func (x *waiting) run(seconds float64) {
	moving := seconds
	if x.drift < 0 {
		moving = min(seconds, (resting*x.v/x.drift-x.number)/x.drift)
	}
	if moving > 1e-3*seconds || x.number*moving > 0.01*x.rest*seconds {
		for i := range pieces {
			x.piece(moving * float64(2*i+1) / (pieces * pieces))
		}
		seconds -= moving
	}
	if seconds > 0 {
		x.number, x.backlog, x.late = x.rest, 0, 0
		x.area += x.rest * seconds
		x.record(seconds, x.rest, 0)
	}
}

// logBegin is ln 2/π.
var logBegin = detmath.Log(2 / math.Pi)

// speed is dL/dt, and its derivative with respect to L.
func (x *waiting) speed() (speed, by float64) {
	z := x.number + x.offset
	g, slope := 1.0, 0.0
	if at := -x.drift * z / x.v; at < 1 {
		g = detmath.Exp((1 - at) * logBegin)
		slope = g * logBegin * x.drift / x.v
	}
	return x.drift + x.v*g/z, x.v * (slope - g/z) / z
}

// piece is an exponential step (Rosenbrock–Euler), exact where the speed is linear. It does
// not go past the state of rest.
func (x *waiting) piece(seconds float64) {
	speed, by := x.speed()
	one, s := expMoments(by * seconds)
	before := x.number
	after := before + speed*seconds*one
	area := (before + speed*seconds*(one-s)) * seconds
	bound := min(x.rest, x.room)
	if before < bound && after > bound || before >= bound && (after < bound || speed > 0) {
		takes := 0.0
		if speed != 0 {
			takes = max(0, min(seconds, (bound-before)/speed))
		}
		after = bound
		area = (before+bound)/2*takes + bound*(seconds-takes)
	}
	backlog := min(max(0, x.backlog+x.drift*seconds), after)
	x.number, x.area = max(0, after), x.area+area
	x.record(seconds, area/seconds, (x.backlog+backlog)/2)
	if x.late += seconds; backlog == 0 {
		x.late = 0
	}
	x.backlog = backlog
}

// record adds the requests done in a time, with this many waiting, some of them as a
// backlog: those waited for what came meanwhile.
func (x *waiting) record(seconds, number, backlog float64) {
	capacity := x.capacity()
	count, chance := min(x.let, capacity)*seconds, max(0, number-backlog)
	if backlog > 0 {
		count = capacity * seconds
	}
	if count <= 0 {
		return
	}
	count *= x.share
	wait := max(0, chance-x.rest) / capacity // remains of a higher load
	if x.let > 0 {
		wait += min(chance, x.rest) / min(x.let, capacity)
	}
	deviation := x.deviation(wait)
	if backlog > 0 {
		wait += min(backlog/max(x.let, 1e-300), x.late+seconds)
	}
	deviation = min(deviation, max(0, x.room/capacity-wait)/(ln100-1))
	deviation = math.Sqrt(x.service*x.service*x.work + deviation*deviation)
	x.tail.addRequests(count, x.service+x.extra+wait-deviation, deviation)
}

// deviation is the scale of a wait by chance, such that its 99th percentile is ln 100 − 1
// of it above the mean. At rest it is an exponential for those that wait. Without rest it
// is first half a normal (2.576 σ, its mean 0.798 σ), then, with a backlog, a whole one
// (2.326 σ).
func (x *waiting) deviation(wait float64) float64 {
	if x.drift < 0 {
		return wait * math.Sqrt(max(0, 2/max(x.delayed, 1e-12)-1))
	}
	half := wait * (2.576/0.798 - 1) / (ln100 - 1)
	return max(half, 2.326/(ln100-1)*math.Sqrt(2*x.v*x.late)/x.capacity())
}
