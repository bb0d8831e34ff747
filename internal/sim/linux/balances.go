// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"

	"homenode/internal/sim/detmath"
)

// Defaults of /sys/kernel/debug/sched/numa_balancing (kernel/sched/fair.c).
const (
	scanDelay     = 1.0                   // seconds before a task's first scan: numa_balancing_scan_delay
	scanPeriodMin = 1.0                   // numa_balancing_scan_period_min
	scanPeriodMax = 60.0                  // numa_balancing_scan_period_max
	scanPages     = 256 << 20 / PageBytes // numa_balancing_scan_size: pages marked per period
	scanFloor     = 0.1                   // MAX_SCAN_WINDOW: never more than 2,560 MB a second
)

const (
	periodSlots     = 10 // NUMA_PERIOD_SLOTS
	periodThreshold = 7  // NUMA_PERIOD_THRESHOLD: aim for 70 % local accesses
	activeFraction  = 3  // ACTIVE_NODE_FRACTION
)

// The costs, in CPU seconds. Estimated: a hint fault is a trap and a check of the page's
// last CPU; a marked page is a changed entry and its part of a TLB flush. The cost of
// moving is Settings.MoveSeconds.
const (
	faultSeconds = 1e-6
	scanSeconds  = 50e-9
)

// taskMove is the part of the threads with most of their memory elsewhere that moves there
// after a pass: each tries by itself (numa_migrate_preferred), and may or may not find an
// idle CPU. Estimated.
const taskMove = 0.5

// Between two turns of the scanner, at most mixAtOnce of the threads are placed anew,
// unless that takes more than turnsAtOnce turns: that is a minute of threads that are
// placed anew once a second. A smaller value is more exact, and slower.
const (
	mixAtOnce   = 0.5
	turnsAtOnce = 32
)

// passesAtOnce bounds the work of one Balance; a pass takes 0.1 s or more.
const passesAtOnce = 600

// pass is one round of the scanner through a group's memory.
type pass struct {
	started  bool
	first    bool    // no page has had a fault before
	wait, at float64 // seconds before it begins; share that is done
	sweeps   float64 // seconds until each marked page has had its fault
	// faults of this pass, in pages
	local, remote, shared, private float64
	failed                         bool
	cpus                           []float64 // share of faults by node of the thread, decaying
}

// Balance is dt seconds of NUMA balancing for a group. It returns the CPU seconds it took.
//
//  1. task_tick_numa: scanning follows the CPU time of threads. A group that does not run
//     is not scanned, and makes no faults.
//  2. task_numa_work: scanPages are marked per Period, from front to end; then a new pass
//     begins. Memory with a policy of its own (vma_policy_mof) is not marked, nor are files
//     that are mapped for reading only, as Mapped is assumed to be. Memory that fits into one
//     marking is marked at once, when the period begins.
//  3. do_numa_page: each marked page makes one fault, by the user that comes first. All
//     pages are accessed within a pass; where all are marked at once, as fast as faults and
//     moves allow.
//  4. should_numa_migrate_memory, see movePrivate and moveShared.
//  5. migrate_misplaced_page: the node must have room above its high watermark. The
//     faulting threads move the pages: in dt, no more than their CPU time allows.
//  6. task_numa_placement, at the end of a pass: the period is adapted, and threads go
//     where most of their memory is.
//
// Meanwhile threads are placed anew (drift.go). Both are done in turns, short enough that
// the length of a step does not matter.
func (h *Host) Balance(dt float64, g *Group) (cpu float64) {
	h.prepare()
	if used := detmath.Sum(g.Used); used <= 0 || !h.balances(g) {
		h.catchUp(g)
		return 0
	}
	if !g.pass.started {
		h.begin(g)
	}
	due := g.wander.due
	turns := min(max(math.Ceil(due/mixAtOnce), 1), turnsAtOnce)
	part := gone(due / turns / 2)
	for range int(turns) {
		if due > 0 {
			g.mix(part, g.wander.aim, h.scratch.b)
		}
		cpu += h.scan(dt/turns, g)
		if due > 0 {
			g.mix(part, g.wander.aim, h.scratch.b)
		}
	}
	g.wander.due = 0
	g.appear(g.wander.base)
	g.Scan.Sunk += cpu
	return cpu
}

// balances reports whether NUMA balancing handles a group.
func (h *Host) balances(g *Group) bool {
	return h.Settings.NUMABalancing && g.Policy.Mode != Bind && g.Policy.Mode != Interleave
}

// scan is Balance without the threads' own migration.
func (h *Host) scan(dt float64, g *Group) (cpu float64) {
	p, used := &g.pass, detmath.Sum(g.Used)
	for i := 0; dt > 0 && i < passesAtOnce; i++ {
		pause := min(p.wait, dt)
		p.wait, dt = p.wait-pause, dt-pause
		pages := detmath.Sum(g.Memory.Private) + detmath.Sum(g.Memory.Shared) // 2
		if dt <= 0 || pages < 1 {
			break
		}
		long := g.Scan.Period * max(pages/scanPages, 1) / min(used, 1) // 1
		if p.at == 0 {
			p.sweeps = long
			if pages <= scanPages {
				p.sweeps = min(long, h.work(g)/used)
			}
		}
		part := min(dt/p.sweeps, 1-p.at)
		cpu += h.sweep(g, part, p.sweeps, used)
		if p.at += part; p.at < 1-1e-12 {
			break
		}
		dt -= part * p.sweeps
		rest := max(long-p.sweeps, 0)
		h.placement(g) // 6
		p.wait = rest
	}
	return cpu
}

// work is the most CPU seconds that a pass can take: it faults for all pages and moves all
// that are marked and not at home.
func (h *Host) work(g *Group) float64 {
	n, faults, moves := len(h.Nodes), 0.0, 0.0
	for i, pages := range g.Memory.Private {
		faults += pages
		if i/n != i%n {
			moves += min(pages, g.Scan.Marked[i])
		}
	}
	for k, pages := range g.Memory.Shared {
		faults += pages
		moves += min(pages, g.Scan.Marked[n*n+k]) * (1 - g.Used[k]/detmath.Sum(g.Used))
	}
	return max(faults*(faultSeconds+scanSeconds)+moves*h.Settings.moveSeconds(), 1e-6)
}

// begin handles a group that was not scanned yet. Its pages move at their first fault,
// whichever thread makes it: should_numa_migrate_memory allows that while no task is known
// to have faulted for them and the task was scanned at most four times.
func (h *Host) begin(g *Group) {
	g.pass = pass{started: true, first: true, wait: scanDelay, cpus: g.pass.cpus}
	n := len(h.Nodes)
	copy(g.Scan.Marked, g.Memory.Private)
	copy(g.Scan.Marked[n*n:], g.Memory.Shared)
	if g.Scan.Period <= 0 {
		g.Scan.Period, _ = g.periods()
	}
	used := detmath.Sum(g.Used)
	for k := range g.pass.cpus {
		g.pass.cpus[k] = g.Used[k] / used
	}
}

// sweep is steps 3 to 5 of Balance for the next part of a pass of long seconds. Marked has
// the pages that will have at least their second fault before the pass ends (in the first
// pass: all pages), listed as in Memory: private rows, then shared pages.
func (h *Host) sweep(g *Group, part, long, used float64) (cpu float64) {
	s, n := &h.scratch, len(h.Nodes)
	faults := g.tally(part, used) // 3
	swept := min(part/max(1-g.pass.at, part), 1)
	stays := 1 - gone(g.wander.rate*long)
	for t := range n { // 4
		g.movePrivate(s.flow[t*n:t*n+n], t, swept, stays, used)
	}
	g.moveShared(s.flow[n*n:], swept, used)
	moved := h.limit(g, used*part*long/h.Settings.moveSeconds()) // 5
	h.apply(g)
	g.Scan.Moved += moved
	return faults*(faultSeconds+scanSeconds) + moved*h.Settings.moveSeconds()
}

// tally counts the faults of a part of a pass, as task_numa_fault does. A shared fault
// between nodes that are both active counts as local (numa_is_active_node).
func (g *Group) tally(part, used float64) (faults float64) {
	p, m, n := &g.pass, &g.Memory, len(g.On)
	local, remote := 0.0, 0.0
	for i, pages := range m.Private {
		switch t := i / n; {
		case g.Used[t] <= 0:
		case i%n == t:
			local += pages
		default:
			remote += pages
		}
	}
	p.local, p.remote = p.local+part*local, p.remote+part*remote
	p.private += part * (local + remote)
	most := 0.0
	for _, x := range p.cpus {
		most = max(most, x)
	}
	for k, pages := range m.Shared {
		for t := range n {
			x := pages * (g.Used[t] / used)
			near := k == t || p.cpus[k]*activeFraction > most && p.cpus[t]*activeFraction > most
			if near {
				p.local += part * x
			} else {
				p.remote += part * x
			}
			if k == t {
				local += x
			} else {
				remote += x
			}
		}
		p.shared += part * pages
	}
	if all := local + remote; all > 0 {
		g.Scan.Local = local / all
		return part * all
	}
	return 0
}

// movePrivate computes which remote pages of the threads on node t move to them. A page
// moves at the second fault in a row from the same node (cpupid), or at its first. stays is
// the probability that a thread was not placed anew between the two; if it was, it may be
// on t by chance.
func (g *Group) movePrivate(flow []float64, t int, swept, stays, used float64) {
	n := len(flow)
	row, marked := g.Memory.Private[t*n:t*n+n], g.Scan.Marked[t*n:t*n+n]
	here := g.Used[t] / used
	again := here + (1-here)*stays
	if g.pass.first {
		again = 1
	}
	for k := range flow {
		see := swept * min(marked[k], row[k])
		marked[k] -= swept * marked[k]
		flow[k] = 0
		if k != t && here > 0 {
			flow[k] = see * again
		}
	}
}

// moveShared computes the shared pages that go from node k to m, in flow[k*n+m].
//
//  1. The last two faults must both be from m: with many threads, the square of its share
//     of the faults. Or both come from the same thread, which moves the page in any case.
//  2. Else m must have activeFraction times the faults of k; or m must have more faults
//     for its pages than k, where 3/4 of m's is enough for k to keep them. Beyond the point
//     where that holds, nothing moves.
//  3. At its first fault a page goes to the thread that makes it.
func (g *Group) moveShared(flow []float64, swept, used float64) {
	n := len(g.On)
	shared, marked, cpus := g.Memory.Shared, g.Scan.Marked[n*n:], g.pass.cpus
	own := 1 / max(g.Threads, 1)
	for k := range n {
		see := swept * min(marked[k], shared[k])
		marked[k] -= swept * marked[k]
		for m := range n {
			flow[k*n+m] = 0
			here := g.Used[m] / used
			if m == k || here <= 0 || see <= 0 {
				continue
			}
			if g.pass.first { // 3
				flow[k*n+m] = see * here
				continue
			}
			flow[k*n+m] = see * here * own            // 1
			others := see * here * (here * (1 - own)) // 1
			to, from := 3*cpus[m], 4*cpus[k]          // 2
			if cpus[m] <= activeFraction*cpus[k] {
				both := shared[k] + shared[m]
				keep := from / max(to+from, 1e-300)
				if to <= 0 {
					keep = 1
				}
				others = min(others, max(shared[k]-both*keep, 0))
			}
			flow[k*n+m] += others
		}
	}
}

// limit is step 5 of Balance. It returns how many pages move.
func (h *Host) limit(g *Group, most float64) (moved float64) {
	s, n := &h.scratch, len(h.Nodes)
	all := 0.0
	for m := range n {
		in := 0.0
		for k := range n {
			in += s.flow[m*n+k] + s.flow[n*n+k*n+m]
		}
		s.pull[m] = 1
		if room := max(s.free[m]-s.high[m], 0); in > room {
			s.pull[m], g.pass.failed = room/in, true
		}
		if !g.Mems[m] {
			s.pull[m] = 0
		}
		all += in * s.pull[m]
	}
	part := 1.0
	if all > most {
		part = most / all
	}
	for m := range n {
		s.pull[m] *= part
	}
	return all * part
}

// apply moves the flows that limit leaves.
func (h *Host) apply(g *Group) {
	s, n := &h.scratch, len(h.Nodes)
	for m := range n {
		for k := range n {
			if k == m {
				continue
			}
			private := s.flow[m*n+k] * s.pull[m]
			shared := s.flow[n*n+k*n+m] * s.pull[m]
			g.Memory.Private[m*n+k] -= private
			g.Memory.Private[m*n+m] += private
			g.Memory.Shared[k] -= shared
			g.Memory.Shared[m] += shared
			s.free[k] += private + shared
			s.free[m] -= private + shared
		}
	}
}
