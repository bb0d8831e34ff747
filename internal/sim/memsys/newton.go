// SPDX-License-Identifier: Apache-2.0

package memsys

import "math"

// Unknowns of a domain: ln T and, where cores have several threads, its busy CPUs and what
// they issue (smt.go); and where LLCs have a fabric of their own, the demand on it.
const (
	ofStay = iota
	ofBusy
	ofIssued
	ofFabric
	ofDomain // number of unknowns of a domain
)

// newton is the linear system of Newton's method. Its unknowns are those of each domain,
// then the demand on each server.
//
// For a load, it needs the derivatives of its lines with respect to the latency to each
// node and to its domain's unknowns. Those of a node (of a domain) are added up before they
// go to servers, so a load costs nodes² and not servers².
type newton struct {
	per  int // unknowns of a domain
	size int // number of unknowns in use: of servers with lines, and domains with loads
	// Positions among the unknowns, -1 if not: a server's, and a domain's first.
	serverAt, domainAt []int
	matrix, right      []float64
	// alone is the derivative of the lines of a server that is not among them with respect
	// to the demand on it.
	alone []float64
	// Places of lines: each node's memory and, where a load adds, then its cores' caches.
	// wide is the number of places.
	wide int
	// readBy[c][m][m'] is the derivative of the lines that c's CPUs read from m with
	// respect to the latency to m'; back: of lines written back. m and m' are places.
	readBy, backBy []float64
	// readOf[domain][unknown][m]: the same with respect to the domain's unknowns.
	readOf, backOf []float64
	// own[domain][what][unknown] is the derivative of lines held, CPUs busy, instructions
	// issued and lines on the fabric with respect to the domain's unknowns; far[domain][what][m] with
	// respect to the latency to m.
	own, far []float64
	// Derivatives of one way's lines with respect to each unknown, and to servers that are
	// no unknowns (way.go).
	passing, aside []passing
	// For the load being added: its lines by ln rate, its ln cycles by latency; by place.
	reads, back, cost []float64
}

func (n *newton) init(s *Solver) {
	n.per = 1
	if s.sys.Threads > 1 {
		n.per = ofFabric
	}
	for i := range s.domains {
		if s.domains[i].fabric.cycles > 0 {
			n.per = ofDomain
		}
	}
	n.serverAt, n.domainAt = make([]int, len(s.servers)), make([]int, len(s.domains))
	n.alone = make([]float64, len(s.servers))
	n.own = make([]float64, len(s.domains)*ofDomain*ofDomain)
}

// spread makes room for the places there are.
func (n *newton) spread(s *Solver) {
	n.wide = s.nodes
	if len(s.adders) > 0 {
		n.wide = 2 * s.nodes
	}
	by, of := s.nodes*n.wide*n.wide, len(s.domains)*ofDomain*n.wide
	n.readBy, n.backBy = grow(n.readBy, by), grow(n.backBy, by)
	n.readOf, n.backOf, n.far = grow(n.readOf, of), grow(n.backOf, of), grow(n.far, of)
	n.reads, n.back, n.cost = grow(n.reads, n.wide), grow(n.back, n.wide), grow(n.cost, n.wide)
}

func (n *newton) clear() {
	clear(n.readBy)
	clear(n.backBy)
	clear(n.readOf)
	clear(n.backOf)
	clear(n.own)
	clear(n.far)
}

// effect is the derivatives of the logarithms of a load's cycles and rate with respect to
// its domain's unknowns, and of the cycles with respect to the latency of its regions'
// reads.
type effect struct {
	cycles, rate         [ofDomain]float64
	byLatency            float64
	free                 float64 // 1 if its rate follows, else 0
	reads, back          float64 // regions' lines per cycle by ln rate
	lessRead, lessBack   float64 // the same by ln T, at a constant rate
	added, addedBack, by float64 // the same for its adds; by: both
}

// addLoad is number 3 of evaluateLoad.
func (n *newton) addLoad(s *Solver, i int, home []float64, t *sums) {
	l := &s.loads[i]
	e := l.effect(s, t)
	n.addOwn(s, l, t, &e)
	reads, back, cost := n.reads[:s.nodes], n.back[:s.nodes], n.cost[:s.nodes]
	for m, share := range home {
		reads[m], back[m], cost[m] = share*e.reads, share*e.back, share*e.byLatency
	}
	n.addLess(s, l, home, e.lessRead, e.lessBack)
	if l.adding.adder >= 0 {
		n.addAdds(s, i, &e)
	} else {
		clear(n.reads[s.nodes:])
		clear(n.cost[s.nodes:])
	}
	n.addLines(s, l, &e)
	n.addFar(s, l, t, &e)
	if e.free > 0 {
		n.addPairs(s, l)
	}
}

func (l *load) effect(s *Solver, t *sums) (e effect) {
	more := l.slow / l.cycles // change of ln cycles for one more cycle before l.slow
	if l.throttled {
		more = 0
	}
	feedback := t.feedback(s, l, l.latency)
	if l.free() {
		feedback = min(feedback, mostFeedback)
		more /= 1 - feedback
		feedback /= 1 - feedback
		e.free = 1
	}
	buffers := (t.bounded*l.latency + t.boundedHits*s.sys.LLCCycles) / l.threadsOfCore * s.domains[l.domain].byBusy
	e.cycles = [ofDomain]float64{-feedback, more * (l.issue*l.byBusy + buffers), more * l.issue * l.byIssued}
	e.byLatency = more * t.exposed
	e.cycles[ofFabric] = (e.byLatency + more*l.adding.reads) * s.domains[l.domain].fabric.byAsk
	for u := range e.rate {
		e.rate[u] = -e.free * e.cycles[u]
	}
	e.reads, e.back = l.rate*(t.reads-t.lessReads), l.rate*(t.back-t.lessBack)
	e.lessRead, e.lessBack = l.rate*t.lessReads, l.rate*t.lessBack
	if g := &l.adding; g.adder >= 0 {
		e.by = l.rate * t.lessAdded
		e.added, e.addedBack = l.rate*g.reads-e.by, l.rate*g.back-e.by
	}
	return e
}

// lines are all that pass the fabric of its domain, by ln rate.
func (e *effect) lines() float64 { return e.reads + e.back + e.added + e.addedBack }

// addAdds adds the effect of a load's adds on its lines and cycles.
func (n *newton) addAdds(s *Solver, i int, e *effect) {
	l := &s.loads[i]
	g := &l.adding
	more := l.slow / l.cycles
	if l.throttled {
		more = 0
	}
	shared := s.shared[i*s.nodes : (i+1)*s.nodes]
	for m, share := range shared {
		n.reads[m] += share * e.added
		n.back[m] += share * e.addedBack
		n.cost[m] += more * g.reads * share
	}
	n.addLess(s, l, shared, e.by, e.by)
	waits := 1.0
	if g.service > 0 {
		waits += g.waiting / (l.adds * g.service)
	}
	for m, share := range s.peers[i*s.nodes : (i+1)*s.nodes] {
		n.reads[s.nodes+m] = l.rate * l.adds * share
		n.cost[s.nodes+m] = more * l.adds * share * waits
	}
}

// addOwn adds the effect of the domain's unknowns on the domain.
func (n *newton) addOwn(s *Solver, l *load, t *sums, e *effect) {
	own := n.own[l.domain*ofDomain*ofDomain:][:ofDomain*ofDomain]
	used := l.rate * l.cycles
	for u := range n.per {
		direct := 0.0
		if u == ofStay {
			direct = 1
		}
		own[u] += t.moreHeld * (direct + e.rate[u])
		own[ofBusy*ofDomain+u] += used * (e.rate[u] + e.cycles[u])
		own[ofIssued*ofDomain+u] += l.rate * l.issue * e.rate[u]
		own[ofFabric*ofDomain+u] += e.lines()*e.rate[u] - direct*(e.lessRead+e.lessBack+2*e.by)
	}
}

// addLess adds that there are fewer lines where they stay longer in the LLC.
func (n *newton) addLess(s *Solver, l *load, home []float64, read, back float64) {
	if read == 0 && back == 0 {
		return
	}
	at := (l.domain*ofDomain + ofStay) * n.wide
	for m, share := range home {
		n.readOf[at+m] -= share * read
		n.backOf[at+m] -= share * back
	}
}

// addLines adds the other effects of the domain's unknowns on lines.
func (n *newton) addLines(s *Solver, l *load, e *effect) {
	for u := range n.per {
		by := e.rate[u]
		if by == 0 {
			continue
		}
		at := (l.domain*ofDomain + u) * n.wide
		for m, reads := range n.reads {
			n.readOf[at+m] += by * reads
		}
		for m, back := range n.back[:s.nodes] {
			n.backOf[at+m] += by * back
		}
	}
}

// addFar adds the effect of the latencies on the domain.
func (n *newton) addFar(s *Solver, l *load, t *sums, e *effect) {
	far := n.far[l.domain*ofDomain*n.wide:][:ofDomain*n.wide]
	busy := l.rate * l.cycles * (1 - e.free)
	held, issued, lines := -(t.moreHeld * e.free), -(l.rate * l.issue * e.free), -(e.lines() * e.free)
	for m, cost := range n.cost {
		if cost == 0 {
			continue
		}
		far[m] += cost * held
		far[ofBusy*n.wide+m] += cost * busy
		far[ofIssued*n.wide+m] += cost * issued
		far[ofFabric*n.wide+m] += cost * lines
	}
}

// addPairs adds the effect on its lines, if its rate follows.
func (n *newton) addPairs(s *Solver, l *load) {
	for m, reads := range n.reads {
		at := (l.node*n.wide + m) * n.wide
		if reads != 0 {
			readTo := n.readBy[at : at+n.wide]
			for to, cost := range n.cost {
				readTo[to] -= reads * cost
			}
		}
		if m >= s.nodes {
			continue
		}
		if back := n.back[m]; back != 0 {
			backTo := n.backBy[at : at+n.wide]
			for to, cost := range n.cost {
				backTo[to] -= back * cost
			}
		}
	}
}

// residuals is the largest error of servers and LLCs.
func (n *newton) residuals(s *Solver) float64 {
	worst := 0.0
	for k := range s.servers {
		worst = max(worst, math.Abs(n.residualOf(&s.servers[k])))
	}
	for i := range s.domains {
		d := &s.domains[i]
		var off [ofDomain]float64
		if own := n.own[i*ofDomain*ofDomain]; d.full && d.lines > 0 && own > 0 && !d.idles() || d.crowded(own) { // else nothing is read
			off[ofStay] = (d.held - d.lines) / d.lines
		}
		off[ofBusy], off[ofIssued] = (d.used-d.busy)/max(1, d.cpus), (d.issues-d.issued)/max(1, d.cpus)
		if len(d.loads) > 0 {
			off[ofFabric] = n.residualOf(&d.fabric)
		}
		for u := range n.per {
			n.pace(&d.pace[u], d.residual[u], off[u])
			worst = max(worst, math.Abs(off[u]))
		}
		d.residual = off
	}
	return worst
}

func (n *newton) residualOf(q *server) float64 {
	asked := q.lines * q.cycles
	off := asked - q.busy
	if q.ask >= q.most() {
		off *= max(1, asked/q.busy) // then 1/asked is linear in the wait
	}
	n.paceOf(q, off)
	return off
}

// pace makes the steps of an unknown smaller while it overshoots.
func (n *newton) pace(pace *float64, before, now float64) {
	if before*now < 0 && math.Abs(now) > 0.3*math.Abs(before) {
		*pace = max(*pace/2, leastPace)
	} else {
		*pace = min(1, 1.6**pace)
	}
}

// leastPace is the smallest pace. Which thread last had a line may change by per cent where
// cycles change by a hundredth of that.
const leastPace = 1.0 / 4096

// mostPace is the largest factor on the steps of a server.
const mostPace = 8

// paceOf is the same for a server. Its steps become longer while they are far too short, as
// where lines that cores take from each other delay each other.
func (n *newton) paceOf(q *server, now float64) {
	before := q.residual
	q.residual = now
	if before*now > 0 && math.Abs(now) > 0.85*math.Abs(before) && q.pace >= 1 {
		q.pace = min(mostPace, 1.6*q.pace)
		return
	}
	if q.pace > 1 && before*now > 0 {
		return // it serves its demand
	}
	n.pace(&q.pace, before, now)
}

// step is one step of Newton's method.
func (n *newton) step(s *Solver, round int) {
	n.build(s)
	n.solve()
	pace := 1.0
	if round > 100 {
		pace = 0.3 // something does not settle
	}
	for k, at := range n.serverAt {
		q := &s.servers[k]
		if at < 0 {
			n.stepAlone(q, n.alone[k])
			continue
		}
		q.step(pace, n.right[at])
	}
	for i, at := range n.domainAt {
		if at < 0 {
			continue
		}
		d := &s.domains[i]
		by := n.right[at:][:n.per]
		if d.full {
			d.stay = min(max(d.stay+pace*d.pace[ofStay]*d.stay*max(-0.7, min(4, by[ofStay])), d.least()), longestStay)
		}
		if n.per > 1 {
			d.busy = max(0, d.busy+pace*d.pace[ofBusy]*by[ofBusy])
			d.issued = max(0, d.issued+pace*d.pace[ofIssued]*by[ofIssued])
		}
		if n.per > ofFabric {
			d.fabric.step(pace, by[ofFabric])
		}
	}
}

// step changes the demand on a server, within bounds.
func (q *server) step(pace, by float64) {
	by = max(-0.2-0.8*q.ask, min(0.5+q.ask, by))
	q.set(q.ask + pace*q.pace*by)
}

// Links with little demand are no unknowns where there are many links: n nodes have up to n
// (n − 1), and the work grows with the cube. Each of them then follows its own equation
// alone: with a load below faint, waits reduce the demand by a few per cent at most.
const (
	manyLinks = 64
	faint     = 0.05
)

// number gives each unknown in use its position.
func (n *newton) number(s *Solver) {
	n.size = 0
	for i := range s.domains {
		n.domainAt[i] = -1
		if len(s.domains[i].loads) > 0 {
			n.domainAt[i] = n.size
			n.size += n.per
		}
	}
	least := n.leastLoad(s)
	for k := range s.servers {
		n.serverAt[k] = -1
		if s.servers[k].used() && (k < s.nodes || s.servers[k].ask >= least) {
			n.serverAt[k] = n.size
			n.size++
		}
	}
	n.matrix, n.right = grow(n.matrix, n.size*n.size), grow(n.right, n.size)
}

// leastLoad is the demand from which on a link is an unknown. It depends on amounts alone,
// so numbers of nodes do not matter.
func (n *newton) leastLoad(s *Solver) float64 {
	least := 0.0
	for ; least < 1e6; least = max(faint, 1.5*least) {
		count := 0
		for k := s.nodes; k < len(s.servers); k++ {
			if q := &s.servers[k]; q.used() && q.ask >= least {
				count++
			}
		}
		if count <= manyLinks {
			break
		}
	}
	return least
}

func (q *server) used() bool { return q.cycles > 0 && (q.lines > 0 || q.ask > 0) }

// stepAlone is the step of a link that is no unknown.
func (n *newton) stepAlone(q *server, slope float64) {
	if !q.used() {
		return
	}
	slope = slope * q.cycles
	if q.ask < q.most() {
		slope--
	}
	q.step(1, q.residual/-min(slope, -0.05))
}

// build sets up matrix × step = right.
func (n *newton) build(s *Solver) {
	n.number(s)
	clear(n.matrix[:n.size*n.size])
	clear(n.alone)
	for c := range s.nodes {
		for m := range n.wide {
			n.way(s, c, m)
		}
	}
	for i, at := range n.domainAt {
		if at >= 0 {
			n.domainRows(s, i, at)
		}
	}
	for k, at := range n.serverAt {
		if at < 0 {
			continue
		}
		q := &s.servers[k]
		row := n.matrix[at*n.size:][:n.size]
		for j := range row {
			row[j] *= q.cycles
		}
		if q.ask < q.most() {
			row[at]--
		}
		row[at] = min(row[at], -0.05)
		n.right[at] = -q.residual
	}
}

// domainRows are the equations of a domain, each relative to its present value.
func (n *newton) domainRows(s *Solver, i, first int) {
	d := &s.domains[i]
	for u := range n.per {
		at := first + u
		row := n.matrix[at*n.size:][:n.size]
		own := n.own[(i*ofDomain+u)*ofDomain:][:ofDomain]
		n.right[at] = -d.residual[u]
		all := max(1, d.cpus)
		switch u {
		case ofFabric:
			if d.fabric.cycles == 0 {
				row[at], n.right[at] = 1, 0
				continue
			}
			all = 1 / d.fabric.cycles
		case ofStay:
			all = d.lines
			if !d.full || d.lines <= 0 || own[ofStay] <= 0 || d.idles() {
				row[at], n.right[at] = 1, 0
				if d.crowded(own[ofStay]) {
					n.right[at] = -0.5
				}
				continue
			}
		}
		for v := range n.per {
			row[first+v] = own[v] / all
		}
		switch {
		case u == ofStay:
			row[at] = max(row[at], 1e-9)
		case u == ofFabric && d.fabric.ask >= d.fabric.most():
			row[at] = min(row[at], -0.05)
		case u == ofFabric:
			row[at] = min(row[at]-1, -0.05)
		default:
			row[at] = min(own[u]-1, -0.05) / all
		}
		n.farRow(s, d.node, row, n.far[(i*ofDomain+u)*n.wide:][:n.wide], all)
	}
}

// farRow adds the effect of latencies.
func (n *newton) farRow(s *Solver, node int, row, far []float64, all float64) {
	for to, by := range far {
		if by == 0 {
			continue
		}
		for _, k := range s.servedBy(node, to) {
			if at := n.serverAt[k]; at >= 0 {
				row[at] += by / all * s.slope(k, to)
			}
		}
	}
}

// solve is Gaussian elimination with the largest pivot of a column; right becomes the
// solution.
func (n *newton) solve() {
	for k := range n.size {
		n.pivot(k)
		top := n.matrix[k*n.size : (k+1)*n.size]
		if top[k] == 0 {
			continue
		}
		for i := k + 1; i < n.size; i++ {
			row := n.matrix[i*n.size : (i+1)*n.size]
			if row[k] == 0 {
				continue
			}
			by := row[k] / top[k]
			for j := k + 1; j < n.size; j++ {
				row[j] -= by * top[j]
			}
			n.right[i] -= by * n.right[k]
		}
	}
	for k := n.size - 1; k >= 0; k-- {
		row := n.matrix[k*n.size : (k+1)*n.size]
		if row[k] == 0 {
			n.right[k] = 0
			continue
		}
		sum := n.right[k]
		for j := k + 1; j < n.size; j++ {
			sum -= row[j] * n.right[j]
		}
		n.right[k] = sum / row[k]
	}
}

func (n *newton) pivot(k int) {
	best := k
	for i := k + 1; i < n.size; i++ {
		if math.Abs(n.matrix[i*n.size+k]) > math.Abs(n.matrix[best*n.size+k]) {
			best = i
		}
	}
	if best == k {
		return
	}
	a, b := n.matrix[k*n.size:(k+1)*n.size], n.matrix[best*n.size:(best+1)*n.size]
	for j := range a {
		a[j], b[j] = b[j], a[j]
	}
	n.right[k], n.right[best] = n.right[best], n.right[k]
}
