// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// Lines that several threads add to (as in lab/plugin/directory.c).
//
//  1. The thread that last added to a line has it in its L2, unless that was too long ago.
//     Which thread that is, is a probability by rates.
//  2. Another core takes it from there. This costs Transfer, with the links' idle latency
//     as in the lab, which does not let these lines wait. Beyond a link's capacity they do
//     wait, as nothing else would limit them. The same thread hits. A line that has left the
//     L2 is in the LLC of its last thread; for other domains it is in memory.
//  3. A line goes from one core to the next, not to two at once: transfers wait for
//     earlier transfers of the same line. In light load the queue is that of an M/D/1; when
//     all threads wait for a line, it holds all of them: W = x k u (1 + u) / 2 (1 − k u),
//     where u is how busy a line is and k = 1 − 1/threads.
//  4. u decides how long threads wait, and this decides u: the consistent u is found, with
//     the other cycles as in the last round.
//  5. Which thread last had a line follows from the rates of the last round. Where that
//     overshoots, only a part of the step is taken (pace).

// adding is the cost of the adds of a load, per operation.
type adding struct {
	adder  int32 // index; -1: the load has no adds
	cycles float64
	// waiting is number 3's part of the present cycles, not of those that follow.
	waiting float64
	owners         // as used in this round
	next    owners // as computed from this round; used in the next, damped
	still   float64
	misses  float64 // share of near that the LLC no longer has
	reads   float64
	back    float64
	counted bool // its lines are in its domain's footprint
	pace    float64
	off     float64 // the additional cost of next
}

// owners says where the lines that a load adds to are.
type owners struct {
	own       float64 // share of its adds to lines that it had last
	transfers float64
	service   float64 // cycles that lines are on their way to it
	fetch     float64 // share that goes to LLC or memory
	near      float64 // share of all its adds to lines that its own domain had last and lost
	known     bool
}

// adder is a workload that adds.
type adder struct {
	workload int
	loads    []int32
	lines    float64
	rate     float64 // adds per cycle, all threads
	threads  float64
	busy     float64 // u
}

// layAdders finds the workloads that add. Those of the last call start from their last
// state, others without waiting.
func (s *Solver) layAdders(warm bool) {
	count := 0
	for i := range s.loads {
		l := &s.loads[i]
		if l.adds <= 0 {
			l.adding = adding{adder: -1, misses: 1}
			continue
		}
		// Loads of a workload are usually adjacent.
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

// contend is numbers 1 to 4 for all adders, by the rates of the last round.
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

// inOwners is number 1: the share of the lines that a load last added to that it still has
// in L2.
func (l *load) inOwners(a *adder) float64 {
	if math.IsInf(l.stay, 1) {
		return 1
	}
	x := a.rate / a.lines * l.stay * l.cycles
	return x / (1 + x)
}

// lastOwner is numbers 1 and 2 for one load.
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
	// A line on its way goes to another thread, so it is not one's own.
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
		to.service += there * (s.sys.transfer(l, o) + s.pairs[l.node*s.nodes+o.node].over)
		to.transfers += there
		if o.domain == l.domain {
			to.near += share - there
		}
	}
	to.fetch = max(0, 1-to.own-to.transfers)
	to.near = min(to.near, to.fetch)
}

// transfer is what a line takes from load o's cores to load l's, on an idle machine.
func (s *System) transfer(l, o *load) float64 {
	if l.domain == o.domain && s.InLLC != nil {
		return s.InLLC[l.node]
	}
	return s.Transfer[l.node][o.node]
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
		slower := 1.2 * g.pace // this step has no derivatives
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

// recount updates the LLC's footprint if a load's adds begin or cease to use it.
func (s *Solver) recount(l *load) {
	if l.fetches() == l.adding.counted {
		return
	}
	d := &s.domains[l.domain]
	s.fill(l.domain)
	d.stay = max(d.stay, d.least())
}

// queueUp is numbers 3 and 4. The longer threads wait, the less busy a line is, so there is
// one u. It is found by false position, with halving where that is slow (Illinois).
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

// costOfAdds is the cost of adds per operation at this share of misses. It returns the
// latency of what they read.
func (s *Solver) costOfAdds(i int) (latency float64) {
	l := &s.loads[i]
	g := &l.adding
	a := &s.adders[g.adder]
	for m, share := range s.shared[i*s.nodes : (i+1)*s.nodes] {
		latency += share * s.pairs[l.node*s.nodes+m].latency
	}
	latency += s.domains[l.domain].fabric.wait
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

// spreadAdds adds their lines to the ways they take.
func (s *Solver) spreadAdds(i int) {
	l := &s.loads[i]
	reads, back, taken := l.rate*l.adding.reads, l.rate*l.adding.back, l.rate*l.adds
	s.domains[l.domain].fabric.lines += reads + back
	for m, share := range s.shared[i*s.nodes : (i+1)*s.nodes] {
		p := &s.pairs[l.node*s.nodes+m]
		p.lines += share * reads
		p.back += share * back
		p.transfers += taken * s.peers[i*s.nodes+m]
	}
}
