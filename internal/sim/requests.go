// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/detmath"
)

const (
	// queuePerThread is how many requests may wait, unless the spec sets it.
	queuePerThread = 64
	// mostStops is how many stops of a step are computed one by one; more count as a slower
	// server.
	mostStops = 8
	// trusted is the share of the requests that must remain in a step before its operations
	// show the capacity. A smaller rest may come from rounding of CPU time.
	trusted = 1e-3
)

// Serve records what happened to a step's requests. c has the operations done.
//
//  1. A request is done, is dropped, or waits: the backlog is conserved.
//  2. The number that waits is the expectation of a queue in motion (waiting.go). The
//     backlog, requests that wait by chance, and those that piled up in a stop are one
//     number, so nothing waits twice.
//  3. Their waiting time is its integral over the step (Little's law).
func (a *asking) Serve(dt float64, c *Counts) {
	if a.Demand.Closed {
		c.Asked = c.Ops
		return
	}
	c.Asked = a.Demand.Asked
	let := c.Asked * (1 - a.refused)
	before, limit := a.queue, a.queueLimit()
	left := max(0, before+let-c.Ops) // 1
	if left <= 1e-9*(before+let) {
		left = 0
	}
	a.queue = min(left, limit)
	c.Dropped = (c.Asked - let) + (left - a.queue)
	if before+c.Asked == 0 {
		a.waits, a.late = 0, 0
		return
	}
	q, run := a.station, dt-a.Demand.Still
	if left > trusted*(before+let) && c.Ops > 0 {
		q.service = q.servers * run / c.Ops
	}
	x := q.waiting(a.rate, (let-(left-a.queue))/dt, limit)
	x.number, x.backlog, x.late, x.tail = max(a.waits, before), before, a.late, &a.tail
	x.step(dt, a.Demand.Still, a.call) // 2
	a.waits, a.late = max(x.number, a.queue), x.late
	c.Latency = x.area + c.Ops*q.service // 3
}

// Wanted is the number of operations to do in the step.
func (a *asking) Wanted() float64 { return a.Demand.Asked*(1-a.refused) + a.queue }

// p99 is the 99th percentile of the latency of all requests since the last call.
func (a *asking) p99() float64 {
	p := a.tail.p99()
	a.tail.filled = 0
	return p
}

func (a *asking) queueLimit() float64 {
	if q := a.Spec.Demand.Queue; q > 0 {
		return float64(q)
	}
	return queuePerThread * float64(a.Spec.Threads)
}

// station is servers with one queue.
type station struct {
	service float64 // seconds
	servers float64
	work    float64 // squared coefficient of variation
	varies  float64 // (Ca² + Cs²)/2, of arrivals and work
	power   float64 // √(2(k + 1)), Sakasegawa's (1977): Lq = varies ρ^power / (1 − ρ)
}

// whole turns a fraction of a server into one slower server.
func (q station) whole() station {
	if q.servers < 1 {
		q.service, q.servers = q.service/q.servers, 1
	}
	q.power = math.Sqrt(2 * (q.servers + 1))
	return q
}

func (q *station) capacity() float64 { return q.servers / q.service }

// Admit sets the share of a step's requests that a full queue refuses. An operation takes
// service seconds, on servers CPUs at once. The share is that of a settled queue where the
// step is long enough for it to settle; else it depends on how full the queue is.
func (a *asking) Admit(dt, service, servers float64) {
	d := &a.Spec.Demand
	a.refused, a.station = 0, station{}
	if a.Demand.Closed {
		return
	}
	q := station{service: service, servers: max(few, servers), work: orOne(d.Spread)}
	q.varies = (orOne(d.Bursts) + q.work) / 2
	a.station = q.whole()
	if a.Demand.Asked == 0 {
		return
	}
	share, mean := a.station.refuses(a.rate, a.queueLimit())
	if share > 0 {
		a.refused = share * a.station.settled(a.rate, mean, max(a.waits, a.queue), dt)
	}
}

// refuses is the share of requests that find no room, and the number that waits then. They
// are those of M/M/k with this room, exact for one server. Where work or arrivals vary more
// or less, the number that waits falls off by ρ^(1/varies).
//
//	P(j wait) ~ r^j, j = 0 … room;   P(a server is free) ~ (ρ^(1−power) − 1)/(1 − ρ)
func (q *station) refuses(rate, room float64) (share, waiting float64) {
	load := rate / q.capacity()
	if room*(1-load) > 40*q.varies {
		return 0, math.Inf(1)
	}
	log := detmath.Log(load)
	r, last := detmath.Exp(log/q.varies), detmath.Exp(min(600, room*log/q.varies))
	free, all, sum := q.power-1, room+1, room*(room+1)/2
	if math.Abs(1-load) > 1e-9 {
		free = (detmath.Exp(min(600, (1-q.power)*log)) - 1) / (1 - load)
	}
	if math.Abs(room*(1-r)) > 1e-4 {
		all = (1 - r*last) / (1 - r)
		sum = r * (1 - (room+1)*last + room*r*last) / ((1 - r) * (1 - r))
	}
	varies := 1 + (q.varies-1)*room/(room+1) // without room the variation does not matter
	return min(1, varies*last/(varies*free+all)), sum / (free + all)
}

// settled is how far a queue with little room has approached the mean number that waits.
func (q *station) settled(rate, mean, waits, dt float64) float64 {
	drift := max(0, rate-q.capacity())
	takes := mean * mean / (q.varies*q.capacity() + drift*mean)
	full := min(1, waits/max(mean, 1e-300))
	full *= full
	full *= full
	return max(full*full, detmath.Exp(-((takes / dt) * (takes / dt))))
}
