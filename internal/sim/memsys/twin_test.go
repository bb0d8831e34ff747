// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"slices"
	"testing"

	"homenode/internal/machine/machinetest"
	"homenode/internal/sim/detmath"
)

// twin is the solver's brute-force twin: everything is moved a little towards what follows
// from everything else, thousands of times, as a machine would settle. It is written from
// the model's comments only, and shares no code with the solver.
type twin struct {
	sys    *System
	loads  []Load
	cycles []float64 // by load
	smooth []float64 // utilisation by server: controllers, then links
	press  []float64 // wait beyond the law's, by server
	stay   []float64 // T by domain
	busy   []float64 // u of the lines a load's workload adds to
	gone   []float64 // share of added lines that a domain's LLC dropped, by load
}

func newTwin(sys *System, loads []Load) *twin {
	t := &twin{sys: sys, loads: loads}
	servers := len(sys.Nodes) + len(sys.Links) + len(sys.Domains)
	t.smooth, t.press = make([]float64, servers), make([]float64, servers)
	t.cycles, t.busy, t.gone = make([]float64, len(loads)), make([]float64, len(loads)), make([]float64, len(loads))
	for i := range loads {
		t.cycles[i] = 100
	}
	for range sys.Domains {
		t.stay = append(t.stay, 10000)
	}
	return t
}

// fabric is the server of a domain's fabric.
func (t *twin) fabric(d int) int { return len(t.sys.Nodes) + len(t.sys.Links) + d }

func (t *twin) server(k int) Server {
	if k < len(t.sys.Nodes) {
		return t.sys.Nodes[k].Server
	}
	if k < t.fabric(0) {
		return t.sys.Links[k-len(t.sys.Nodes)]
	}
	return t.sys.Domains[k-t.fabric(0)].Fabric
}

// most is how busy a server can be.
func (t *twin) most() float64 {
	if t.sys.Queue == MD1 {
		return 0.98
	}
	return 1
}

// wait is the law of queue.c, or the server's multiple of the idle latency.
func (t *twin) wait(k int) float64 {
	s := t.server(k).Cycles
	if t.sys.Queue == PublishedCurve {
		if s == 0 {
			return 0
		}
		least := math.Inf(1)
		for c, row := range t.sys.Path {
			for m, path := range row {
				if k == m && c == m {
					least = math.Min(least, t.sys.Latency[c][m])
				}
				if slices.Contains(path, k-len(t.sys.Nodes)) {
					least = math.Min(least, t.sys.Latency[c][m]-t.sys.Latency[c][c])
				}
			}
		}
		if k >= t.fabric(0) {
			least = t.sys.Domains[k-t.fabric(0)].Idle
		}
		least = math.Max(least, 50) // where idle latencies say nothing
		rho := math.Min(1, t.smooth[k])
		return least*(0.599*rho+0.286*math.Pow(rho, 8)) + t.press[k]
	}
	rho := math.Min(0.95, t.smooth[k])
	return s*rho/(2*(1-rho)) + t.press[k]
}

func (t *twin) rate(i int) float64 {
	return math.Min(t.loads[i].CPUs/t.cycles[i], t.loads[i].Ops/t.sys.Hz)
}

func (t *twin) node(i int) int { return t.sys.Domains[t.loads[i].Domain].Node }

// footprint is the lines that a region of a load takes in the LLC, and in an L2.
func (t *twin) footprint(i int, r Region) (llc, l2 float64) {
	lines := r.Bytes / 64
	if r.Shared {
		return lines, lines
	}
	return lines * math.Max(1, math.Max(t.loads[i].Threads, t.loads[i].CPUs)), lines
}

// stayL2 is the operations for which a line stays in the L2 of a CPU of a load, by
// bisection.
func (t *twin) stayL2(i int, siblings float64) float64 {
	room, w := t.sys.L2/64/(1+siblings), t.loads[i].Work
	if own := t.sys.Domains[t.loads[i].Domain].L2; own > 0 {
		room = own / 64 / (1 + siblings)
	}
	held := func(stay float64) (sum float64) {
		one := func(lines, accesses float64, laps bool) {
			if laps {
				sum += math.Min(lines, accesses*stay)
			} else {
				sum += accesses * stay / (1 + accesses*stay/lines)
			}
		}
		for _, r := range w.Regions {
			_, lines := t.footprint(i, r)
			one(lines, r.Accesses, r.Stream)
		}
		if w.Adds > 0 {
			one(w.Lines, w.Adds, false)
		}
		return sum
	}
	low, high := 0.0, 1e12
	if held(high) <= room {
		return math.Inf(1)
	}
	for range 200 {
		if mid := (low + high) / 2; held(mid) < room {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// outstanding accesses of a region, for hits of L2 and beyond: as many as it has, and as
// its thread's part of the core's buffers lets it.
func (t *twin) outstanding(r Region, siblings float64) (near, far float64) {
	near, far = r.Parallelism, r.Parallelism
	l1, l2 := t.sys.Misses.L1, t.sys.Misses.L2
	if l1 > 0 {
		near = math.Max(1, math.Min(near, l1/(1+siblings)))
	}
	if l2 > 0 {
		far = math.Max(1, math.Min(far, l2/(1+siblings)))
	}
	if l1 > 0 && l1 < l2 && !r.Stream {
		far = math.Min(near, far)
	}
	return near, far
}

func (t *twin) l2Hits(i int, r Region, stay float64) float64 {
	_, lines := t.footprint(i, r)
	x := r.Accesses * stay / lines
	switch {
	case math.IsInf(x, 1):
		return 1
	case r.Stream:
		return math.Max(0, math.Min(1, 5-4/x)) // from 1 at room = size to 0 at size = 1.25 room
	}
	return x / (1 + x)
}

// settle is one small step of everything. It returns the largest move.
func (t *twin) settle(step float64) (moved float64) {
	M := len(t.sys.Nodes)
	lines := make([]float64, len(t.smooth))
	held, room := make([]float64, len(t.stay)), make([]float64, len(t.stay))
	next := make([]float64, len(t.loads))
	read := func(c, m int, n float64) {
		lines[m] += n
		for _, l := range t.sys.Path[c][m] {
			lines[M+l] += n
		}
	}
	for i, l := range t.loads {
		c, d := t.node(i), l.Domain
		y := t.rate(i)
		latency := func(m int) float64 {
			sum := t.sys.Latency[c][m] + t.wait(m)
			for _, l := range t.sys.Path[c][m] {
				sum += t.wait(M + l)
			}
			return sum + t.wait(t.fabric(d))
		}
		siblings, stretch := t.siblings(i)
		stay := t.stayL2(i, siblings)
		issue := math.Min(l.Work.Cycles, l.Work.Instructions)
		sum := l.Work.Cycles + issue*(stretch-1)
		home := func(n, overlap, back float64) {
			for m, share := range l.Home {
				sum += n * share * latency(m) / overlap
				read(c, m, y*n*share)
				lines[t.fabric(d)] += y * (n + back) * share
				lines[m] += y * back * share
				for _, l := range t.sys.Path[m][c] {
					lines[M+l] += y * back * share
				}
			}
		}
		for _, r := range l.Work.Regions {
			hits := t.l2Hits(i, r, stay)
			near, overlap := t.outstanding(r, siblings)
			sum += r.Accesses * hits * t.sys.L2Cycles / near
			if hits == 1 {
				continue
			}
			asks := r.Accesses * (1 - hits)
			all, _ := t.footprint(i, r)
			room[d] += all
			miss := t.missLLC(d, asks*y/all, r.Stream)
			held[d] += math.Min(all, t.stay[d]*asks*y*miss)
			if miss == 0 {
				held[d] += all
			}
			sum += asks * (1 - miss) * t.sys.LLCCycles / overlap
			dirty := 0.0
			if r.Writes > 0 {
				dirty = r.Writes / (1 - (1-miss)*(1-r.Writes))
			}
			home(asks*miss, overlap, asks*miss*dirty)
		}
		if l.Work.Adds > 0 {
			t.adds(i, siblings, &sum, home, lines, held, room)
		}
		next[i] = sum
		if l.Slow > 0 {
			next[i] *= l.Slow
		}
	}
	for i := range next {
		moved = math.Max(moved, math.Abs(next[i]/t.cycles[i]-1))
		t.cycles[i] += 0.3 * (next[i] - t.cycles[i])
	}
	for d := range t.stay {
		switch lines := t.sys.Domains[d].LLC / 64; {
		case room[d] <= lines:
			t.stay[d] = math.Inf(1)
		case math.IsInf(t.stay[d], 1):
			t.stay[d] = 10000
		case held[d] > 0:
			off := lines/held[d] - 1
			moved = math.Max(moved, math.Abs(off))
			t.stay[d] *= 1 + 0.3*math.Max(-0.5, math.Min(1, off))
		}
	}
	for k := range lines {
		rho := lines[k] * t.server(k).Cycles
		t.smooth[k] += step * (rho - t.smooth[k])
		off := rho - t.most()
		before := t.press[k]
		t.press[k] = math.Max(0, before+step*off*(50+t.wait(k)))
		moved = math.Max(moved, math.Abs(t.press[k]-before)/step/100)
		moved = math.Max(moved, math.Abs(math.Min(t.most(), rho)-math.Min(t.most(), t.smooth[k])))
	}
	return moved
}

// missLLC is the miss ratio at q requests per line and cycle.
func (t *twin) missLLC(d int, q float64, laps bool) float64 {
	x := q * t.stay[d]
	switch {
	case math.IsInf(t.stay[d], 1):
		return 0
	case laps:
		return 1 - math.Exp(-1/x)
	}
	return 1 / (1 + x)
}

// siblings of a CPU of load i's domain, and how long one of its instructions takes.
func (t *twin) siblings(i int) (n, stretch float64) {
	if t.sys.Threads < 2 {
		return 0, 1
	}
	d := t.loads[i].Domain
	busy, issued := 0.0, 0.0
	for j, l := range t.loads {
		if l.Domain == d {
			busy += t.rate(j) * t.cycles[j]
			issued += t.rate(j) * math.Min(l.Work.Cycles, l.Work.Instructions)
		}
	}
	cores := t.sys.Domains[d].CPUs / 2
	n = 0
	if both := math.Min(busy, 2*cores) - cores; both > 0 {
		n = 2 * both / math.Min(busy, 2*cores)
	}
	used := t.rate(i) * t.cycles[i]
	self := math.Max(0, math.Min(math.Min(1, used), busy-used))
	if n == 0 || busy-self < 1e-9 {
		return n, 1
	}
	l := t.loads[i]
	rate := (issued - self*math.Min(l.Work.Cycles, l.Work.Instructions)/t.cycles[i]) / (busy - self)
	each := 2.0
	if rate < 0.5 {
		each = 1 / (1 - rate)
	}
	return n, 1 - n + n*each
}

// adds of load i: which thread had the line, where it is now, and which threads wait for
// it.
func (t *twin) adds(i int, siblings float64, sum *float64, home func(n, overlap, back float64),
	lines, held, room []float64) {
	l, c := t.loads[i], t.node(i)
	total, cpus := 0.0, 0.0
	for j, o := range t.loads {
		if o.Workload == l.Workload {
			total += t.rate(j) * o.Work.Adds
			cpus += t.rate(j) * t.cycles[j]
		}
	}
	used := t.rate(i) * t.cycles[i]
	mine := t.rate(i) * l.Work.Adds / total
	sameCore := math.Min(1, (1+siblings)/math.Max(1, used))
	self := mine * sameCore * (1 - t.busy[i])
	in := func(j int) float64 { // still in the L2 of load j's core
		sib, _ := t.siblings(j)
		s := t.stayL2(j, sib)
		if math.IsInf(s, 1) {
			return 1
		}
		x := total / l.Work.Lines * s * t.cycles[j]
		return x / (1 + x)
	}
	still := in(i)
	own, transfers, service, here := self*still, 0.0, 0.0, self*(1-still)
	for j, o := range t.loads {
		if o.Workload != l.Workload {
			continue
		}
		share := t.rate(j) * o.Work.Adds / total
		if j == i {
			share -= mine * sameCore
		}
		share *= (1 - self) / math.Max(1e-12, 1-mine*sameCore)
		there := in(j)
		transfers += share * there
		service += share * there * t.transfer(c, t.node(j))
		for _, k := range t.sys.Path[c][t.node(j)] {
			lines[len(t.sys.Nodes)+k] += t.rate(i) * l.Work.Adds * share * there
		}
		if o.Domain == l.Domain {
			here += share * (1 - there)
		}
	}
	fetch := math.Max(0, 1-own-transfers)
	miss := 1.0
	if fetch > 1e-9 {
		room[l.Domain] += l.Work.Lines
		asks := t.rate(i) * l.Work.Adds * fetch
		miss = t.missLLC(l.Domain, asks/l.Work.Lines, false)
		if miss == 0 {
			held[l.Domain] += l.Work.Lines
		} else {
			held[l.Domain] += t.stay[l.Domain] * asks * miss
		}
	}
	here = math.Min(here, fetch)
	long := 0.0
	if cpus > 1 {
		ku := t.busy[i] * (1 - 1/cpus)
		long = ku * (1 + t.busy[i]) / 2 / (1 - ku)
	}
	*sum += l.Work.Adds * (t.sys.Atomic + own*t.sys.L2Cycles + service*(1+long) + here*(1-miss)*t.sys.LLCCycles)
	home(l.Work.Adds*(fetch-here*(1-miss)), 1, l.Work.Adds*here*miss)
	t.busyLines(i)
}

// transfer is the wait where a link is beyond its capacity.
func (t *twin) transfer(c, m int) float64 {
	sum := t.sys.Transfer[c][m]
	for _, k := range t.sys.Path[c][m] {
		sum += t.press[len(t.sys.Nodes)+k]
	}
	return sum
}

// busyLines moves u of load i's workload towards the value that its transfers imply.
func (t *twin) busyLines(i int) {
	l := t.loads[i]
	total, u := 0.0, 0.0
	for j, o := range t.loads {
		if o.Workload == l.Workload {
			total += t.rate(j) * o.Work.Adds
		}
	}
	for j, o := range t.loads {
		if o.Workload != l.Workload {
			continue
		}
		sib, _ := t.siblings(j)
		mine := t.rate(j) * o.Work.Adds / total * math.Min(1, (1+sib)/math.Max(1, t.rate(j)*t.cycles[j]))
		self := mine * (1 - t.busy[j])
		for k, p := range t.loads {
			if p.Workload != l.Workload {
				continue
			}
			share := t.rate(k) * p.Work.Adds / total
			if k == j {
				share -= mine
			}
			share *= (1 - self) / math.Max(1e-12, 1-mine)
			sk, _ := t.siblings(k)
			still := 1.0
			if s := t.stayL2(k, sk); !math.IsInf(s, 1) {
				x := total / p.Work.Lines * s * t.cycles[k]
				still = x / (1 + x)
			}
			u += t.rate(j) * o.Work.Adds * share * still * t.transfer(t.node(j), t.node(k))
		}
	}
	t.busy[i] += 0.1 * (math.Min(1, u/l.Work.Lines) - t.busy[i])
}

func TestTwin(t *testing.T) {
	n := machinetest.Seeds(200, 2000)
	r := detmath.NewRandom(5, "twin")
	compared, unsettled := 0, 0
	for i := range n {
		sys := tinySystem(&r)
		loads := randomLoads(&r, &sys, 1+r.Below(4))
		var s Solver
		got := s.Solve(&sys, loads)
		w := newTwin(&sys, loads)
		steps := 0
		for ; steps < 60000 && w.settle(0.02) > 1e-6; steps++ {
		}
		if steps == 60000 {
			unsettled++
			continue
		}
		for j := range loads {
			compared++
			if off := math.Abs(got.Loads[j].Cycles/w.cycles[j] - 1); !(off < 1e-3) {
				t.Errorf("%d: load %d of %d takes %v cycles, the twin finds %v (residue %v)", i, j, len(loads), got.Loads[j].Cycles, w.cycles[j], got.Residue)
				break
			}
		}
	}
	t.Logf("%d loads compared, %d inputs on which the twin did not settle", compared, unsettled)
	if compared < n || unsettled > n/50 {
		t.Errorf("only %d loads compared, %d unsettled", compared, unsettled)
	}
}

// tinySystem has 1 to 3 nodes and figures of its own.
func tinySystem(r *detmath.Random) System {
	n := 1 + r.Below(3)
	sys := System{Hz: 5e7, L2: 65536, L2Cycles: 12, LLCCycles: 40, Atomic: 18, Threads: 1 + r.Below(2), Queue: Queue(r.Below(2)), Path: make([][][]int, n)}
	sys.Misses = [...]Misses{{}, {1, 4}, {4, 6}}[r.Below(3)]
	fabric := float64(r.Below(2)) // or none
	for c := range n {
		sys.Nodes = append(sys.Nodes, Node{CPUs: 4, Memory: 1 << 30, Server: Server{Cycles: 5 + 30*r.Float()}})
		sys.Domains = append(sys.Domains, Domain{Node: c, CPUs: 4, LLC: 1 << 19, L2: float64(r.Below(3)) * (1 << 15), Fabric: Server{Cycles: fabric * (10 + 20*r.Float())}, Idle: 100 * r.Float()})
		sys.Path[c] = make([][]int, n)
		latency, transfer := make([]float64, n), make([]float64, n)
		for m := range n {
			latency[m], transfer[m] = 200+30*r.Float(), 130
			if c != m {
				latency[m], transfer[m] = 300+200*r.Float(), 250+50*r.Float()
				sys.Path[c][m] = []int{len(sys.Links)}
				sys.Links = append(sys.Links, Server{Cycles: 60 * r.Float()})
			}
		}
		sys.Latency, sys.Transfer = append(sys.Latency, latency), append(sys.Transfer, transfer)
	}
	return sys
}
