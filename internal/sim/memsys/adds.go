// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// Lines that several threads add to (lab/plugin/directory.c).
//
//  1. The thread that added to a line last has it in its L2, unless that was too long ago.
//     Which thread that is, is a probability by rates.
//  2. Another core takes it from there: Transfer, the links being as they are for the
//     lab, which does not let these lines wait; beyond a link's capacity they do, as
//     nothing else would hold them back. Itself, it hits. Gone from L2, the line is in
//     the LLC of its last thread, for the others in memory.
//  3. A line goes from one core to the next, not to two at once: transfers wait for
//     those of the same line before. The queue is that of an M/D/1 in light load; when
//     all threads wait for a line it holds all of them:
//     W = x k u (1 + u) / 2 (1 − k u), u how busy a line is, k = 1 − 1/threads.
//  4. u decides how long threads wait, and with it u: the one u that agrees is found,
//     the other cycles as they were in the last round.
//  5. Which thread had a line last follows from the rates of the last round; where that
//     overshoots, only part of the way is gone (pace).

// adding is what adds cost a load, an operation.
type adding struct {
	adder  int32 // index; -1: it has none
	cycles float64
	// waiting is number 3's part of cycles as they are, not of those that follow.
	waiting float64
	owners         // as they are taken
	next    owners // as they follow; damped they are taken the next time
	still   float64
	misses  float64 // share of near that the LLC no longer has
	reads   float64
	back    float64
	counted bool // its lines are in the footprint of its domain
	pace    float64
	off     float64 // what next would cost more
}

// owners is where the lines that a load adds to are.
type owners struct {
	own       float64 // share of its adds whose line it had last
	transfers float64
	service   float64 // cycles that lines are on their way to it
	fetch     float64 // share that asks LLC or memory
	near      float64 // of all its adds, share for lines that its own domain had last and lost
	known     bool
}

// adder is a workload that adds.
type adder struct {
	workload int
	loads    []int32
	lines    float64
	rate     float64 // adds a cycle, all threads
	threads  float64
	busy     float64 // u
}

// layAdders finds the workloads that add. Those of the last time begin as they ended,
// others with no waiting.
func (s *Solver) layAdders(warm bool) {
	count := 0
	for i := range s.loads {
		l := &s.loads[i]
		if l.adds <= 0 {
			l.adding = adding{adder: -1, misses: 1}
			continue
		}
		// Loads of a workload are neighbours mostly.
		at := count - 1
		for at >= 0 && s.adders[at].workload != l.workload {
			at--
		}
		if at < 0 {
			at = count
			count++
			s.layAdder(at, l, warm)
		}
		if !warm || l.adding.adder != int32(at) {
			l.adding = adding{misses: 1}
		}
		l.adding.adder, l.adding.pace, l.adding.off = int32(at), 1, 0
		s.adders[at].loads = append(s.adders[at].loads, int32(i))
	}
	s.adders = s.adders[:count]
	s.peers, s.nextPeers = grow(s.peers, len(s.loads)*s.nodes), grow(s.nextPeers, len(s.loads)*s.nodes)
}

func (s *Solver) layAdder(at int, l *load, warm bool) {
	known := warm && at < len(s.adders) && s.adders[at].workload == l.workload
	s.adders = grow(s.adders, max(at+1, len(s.adders)))
	a := &s.adders[at]
	busy := a.busy
	*a = adder{workload: l.workload, lines: l.addLines, loads: a.loads[:0]}
	if known {
		a.busy = busy
	}
}

// contend is numbers 1 to 4 of all adders, by the rates of the last round.
func (s *Solver) contend() {
	for i := range s.adders {
		a := &s.adders[i]
		a.rate, a.threads = 0, 0
		for _, j := range a.loads {
			l := &s.loads[j]
			a.rate += l.rate * l.adds
			a.threads += l.rate * l.cycles
		}
		for _, j := range a.loads {
			s.loads[j].adding.still = s.loads[j].inOwners(a)
		}
		for _, j := range a.loads {
			s.lastOwner(int(j), a)
			s.take(int(j), a)
		}
		s.queueUp(a)
	}
}

// inOwners is number 1: the share of lines it added to last that a load still has in
// L2.
func (l *load) inOwners(a *adder) float64 {
	if math.IsInf(l.stay, 1) {
		return 1
	}
	x := a.rate / a.lines * l.stay * l.cycles
	return x / (1 + x)
}

// lastOwner is numbers 1 and 2 of one load.
func (s *Solver) lastOwner(i int, a *adder) {
	l := &s.loads[i]
	peers := s.nextPeers[i*s.nodes : (i+1)*s.nodes]
	clear(peers)
	to := &l.adding.next
	*to = owners{fetch: 1, known: true}
	if a.rate <= 0 {
		return
	}
	d := &s.domains[l.domain]
	alone := min(1, (1+d.siblings)/max(1, l.rate*l.cycles))
	// A line on its way is on its way to another: it is not one's own.
	last := l.rate * l.adds * alone / a.rate
	own := last * (1 - a.busy)
	others := max(1e-12, 1-last)
	to.own, to.near = own*l.adding.still, own*(1-l.adding.still)
	left := (1 - own) / others
	for _, j := range a.loads {
		o := &s.loads[j]
		share := o.rate * o.adds / a.rate * left
		if int(j) == i {
			share *= 1 - alone
		}
		there := share * o.adding.still
		peers[o.node] += there
		to.service += there * (s.sys.Transfer[l.node][o.node] + s.pairs[l.node*s.nodes+o.node].over)
		to.transfers += there
		if o.domain == l.domain {
			to.near += share - there
		}
	}
	to.fetch = max(0, 1-to.own-to.transfers)
	to.near = min(to.near, to.fetch)
}

// take is number 5.
func (s *Solver) take(i int, a *adder) {
	l := &s.loads[i]
	g := &l.adding
	to, n := &g.next, s.nodes
	before := g.off
	longer := a.longer(a.busy)
	g.off = l.slow * (to.cost(s, l, g.misses, longer, l.addLatency) - g.owners.cost(s, l, g.misses, longer, l.addLatency)) / l.cycles
	if !g.known {
		g.off = 1
	} else {
		slower := 1.2 * g.pace // it has no derivatives to go by
		s.newton.pace(&g.pace, before, g.off)
		g.pace = min(g.pace, slower)
	}
	now, next := s.peers[i*n:(i+1)*n], s.nextPeers[i*n:(i+1)*n]
	if g.pace == 1 || !g.known {
		g.owners = *to
		copy(now, next)
		s.recount(l)
		return
	}
	g.own += g.pace * (to.own - g.own)
	g.transfers += g.pace * (to.transfers - g.transfers)
	g.service += g.pace * (to.service - g.service)
	g.fetch += g.pace * (to.fetch - g.fetch)
	g.near += g.pace * (to.near - g.near)
	for m := range now {
		now[m] += g.pace * (next[m] - now[m])
	}
	s.recount(l)
}

// recount is what an LLC is to hold, if a load's adds begin or cease to ask it.
func (s *Solver) recount(l *load) {
	if l.fetches() == l.adding.counted {
		return
	}
	d := &s.domains[l.domain]
	s.fill(l.domain)
	d.stay = max(d.stay, d.least())
}

// queueUp is numbers 3 and 4. How busy a line is falls as threads wait longer, so that
// there is one u: by false position, halved where that is slow (Illinois).
func (s *Solver) queueUp(a *adder) {
	low, high := 0.0, 1.0
	atLow := s.lineBusy(a, 0)
	if atLow <= 1e-12 {
		a.busy = 0
		return
	}
	atHigh := s.lineBusy(a, 1) - 1
	if atHigh >= 0 {
		a.busy = 1
		return
	}
	u, side := a.busy, 0
	if u <= 0 || u >= 1 {
		u = min(0.5, atLow/2)
	}
	for range 60 {
		off := s.lineBusy(a, u) - u
		if off > 0 {
			low, atLow = u, off
			if side > 0 {
				atHigh /= 2
			}
			side = 1
		} else {
			high, atHigh = u, off
			if side < 0 {
				atLow /= 2
			}
			side = -1
		}
		if math.Abs(off) <= 1e-13 || high-low <= 1e-12 {
			break
		}
		u = (low*atHigh - high*atLow) / (atHigh - atLow)
		if !(u > low && u < high) {
			u = (low + high) / 2
		}
	}
	a.busy = u
}

// longer is W / x.
func (a *adder) longer(u float64) float64 {
	if a.threads <= 1 {
		return 0
	}
	ku := u - u/a.threads
	return ku * (1 + u) / (2 * (1 - ku))
}

// lineBusy is how busy a line is when threads wait as they do at u.
func (s *Solver) lineBusy(a *adder, u float64) float64 {
	longer, sum := a.longer(u), 0.0
	for _, i := range a.loads {
		l := &s.loads[i]
		g := &l.adding
		cycles := l.cycles - l.slow*g.waiting + l.slow*l.adds*g.service*longer
		sum += l.rateAt(max(leastCycles, cycles)) * l.adds * g.service
	}
	return sum / a.lines
}

// costOfAdds is what they come to, an operation, at this share of misses; it returns
// the latency of what they read.
func (s *Solver) costOfAdds(i int) (latency float64) {
	l := &s.loads[i]
	g := &l.adding
	a := &s.adders[g.adder]
	for m, share := range s.shared[i*s.nodes : (i+1)*s.nodes] {
		latency += share * s.pairs[l.node*s.nodes+m].latency
	}
	longer := a.longer(a.busy)
	g.waiting = l.adds * g.service * longer
	g.reads = l.adds * (g.fetch - g.near*(1-g.misses))
	g.back = l.adds * g.near * g.misses
	g.cycles = g.owners.cost(s, l, g.misses, longer, latency)
	return latency
}

func (o *owners) cost(s *Solver, l *load, misses, longer, latency float64) float64 {
	hits := o.near * (1 - misses)
	return l.adds * (s.sys.Atomic + o.own*s.sys.L2Cycles + o.service*(1+longer) +
		hits*s.sys.LLCCycles + (o.fetch-hits)*latency)
}

// spreadAdds adds their lines to the ways they go.
func (s *Solver) spreadAdds(i int) {
	l := &s.loads[i]
	reads, back, taken := l.rate*l.adding.reads, l.rate*l.adding.back, l.rate*l.adds
	for m, share := range s.shared[i*s.nodes : (i+1)*s.nodes] {
		p := &s.pairs[l.node*s.nodes+m]
		p.lines += share * reads
		p.back += share * back
		p.transfers += taken * s.peers[i*s.nodes+m]
	}
}
