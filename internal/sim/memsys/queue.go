// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

const (
	mdCap  = 0.95 // lab/plugin/queue.c: M/D/1 is used up to here
	mdMost = 0.98 // share of the capacity that a saturating load gets
	// steep is how fast a wait grows that holds back demand beyond the capacity: in idle
	// latencies per excess capacity. It changes the path to the solution, not the solution.
	steep = 4
	// least is used in place of the idle latency for steep where that says nothing.
	leastIdle = 50
)

// Default law of a machine that was not measured under load: latency as a multiple of the
// idle one, 1 + linear ρ + late ρ^8. TestLoadedLatency shows what it is fitted to. Lines
// share banks and buses at any load; near saturation they queue. It is the law of
// controllers; for links it is a guess (prepare.go, idleOver).
const (
	defaultLinear = 0.599
	defaultLate   = 0.286
)

// server is a controller or a link.
//
// Its state is one number, ask: the demand on it. Up to its capacity that is its
// utilisation, and the law gives the wait; beyond, utilisation stays there and the wait
// grows. So both are functions of ask that never decrease, also at saturation, where the
// wait is whatever holds the load back.
type server struct {
	cycles   float64 // per line; 0: no limit
	idle     float64
	law      Queue
	curve    []Point
	ask      float64
	wait     float64
	byAsk    float64 // derivative of the wait
	over     float64 // part of the wait beyond the law: for lack of capacity
	byOver   float64 // its derivative
	busy     float64 // utilisation at ask
	lines    float64 // per cycle, made by the loads
	pace     float64
	residual float64
}

func (q *server) init(from Server, law Queue, idle float64) {
	*q = server{cycles: from.Cycles, idle: max(idle, leastIdle), law: law, curve: from.Curve, pace: 1}
	if !(q.cycles > 0) || math.IsInf(q.cycles, 1) {
		q.cycles = 0
	}
	q.set(0)
}

// most is the utilisation at which it is saturated.
func (q *server) most() float64 {
	if q.law == MD1 && len(q.curve) == 0 {
		return mdMost
	}
	return 1
}

// set computes the state at this demand.
func (q *server) set(ask float64) {
	q.ask = max(0, ask)
	most := q.most()
	q.busy = min(q.ask, most)
	q.wait, q.byAsk = q.waitAt(q.busy)
	q.over, q.byOver = 0, 0
	if over := q.ask - most; over > 0 {
		q.byAsk = steep * q.idle
		q.over, q.byOver = over*q.byAsk, q.byAsk
		q.wait += q.over
	}
}

// waitAt is the law, and its derivative.
func (q *server) waitAt(busy float64) (wait, slope float64) {
	switch {
	case q.cycles == 0:
		return 0, 0
	case len(q.curve) > 0:
		y, slope := curveAt(q.curve, busy)
		return max(0, q.idle*(y-1)), q.idle * slope
	case q.law != MD1:
		y, slope := defaultAt(busy)
		return q.idle * (y - 1), q.idle * slope
	case busy >= mdCap:
		return q.cycles * mdCap / (2 * (1 - mdCap)), 0
	default:
		idle := 1 - busy
		return q.cycles * busy / (2 * idle), q.cycles / (2 * idle * idle)
	}
}

func defaultAt(busy float64) (y, slope float64) {
	p2 := busy * busy
	p4 := p2 * p2
	return 1 + defaultLinear*busy + defaultLate*p4*p4,
		defaultLinear + 8*defaultLate*p4*p2*busy
}

// curveAt is a measured curve: straight between its points, from (0, 1) on; beyond its end
// it continues like the default law.
func curveAt(curve []Point, x float64) (y, slope float64) {
	from := Point{0, 1}
	for _, p := range curve {
		if x <= p.X && p.X > from.X {
			slope = (p.Y - from.Y) / (p.X - from.X)
			return from.Y + slope*(x-from.X), slope
		}
		from = p
	}
	end, _ := defaultAt(from.X)
	y, slope = defaultAt(x)
	return from.Y * y / end, from.Y * slope / end
}
