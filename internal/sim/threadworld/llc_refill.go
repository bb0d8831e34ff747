// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
)

// cold is what a thread that moved to another LLC must still bring there.
type cold struct {
	lines, l2 float64 // lines that it would have hit in the LLC; those of them in its own L2
	each      float64 // additional cycles to bring one line
	paid      float64 // CPUs' worth of time, in this step
}

// chill handles a thread that is about to move from a CPU to one below another LLC. It is
// an estimate:
//
//  1. The thread leaves behind its part of what its workload holds there: of private
//     regions as much as each thread holds; of shared regions everything, if no thread of the
//     workload is at the destination. It is at most the size of the new LLC.
//  2. Holding as much again costs one miss for each line that would have been a hit, by
//     the share of its requests that were hits: a stream that an LLC does not help loses
//     nothing.
//  3. Each miss is a read from where its pages are, on an idle machine, instead of from
//     the LLC; as many at once as its own reads.
//  4. Each line that was in its L2 is an additional request.
//
// Not included: lines may still be there when it comes back; others must reload what it
// overwrites; moves below one LLC cost, too (L2 from the LLC: some 10 to 100 µs).
func (w *World) chill(t *thread, from, to *cpu) {
	if t.group >= len(w.groups) {
		return
	}
	g := &w.groups[t.group]
	if g.wl != t.wl || g.llc != from.llc || g.requests <= 0 || g.threads <= 0 {
		return
	}
	work := &t.wl.Works[t.wl.Demand.Phase]
	own, shared, accesses, reads := 0.0, 0.0, 0.0, 0.0
	for i := range work.Regions {
		r := &work.Regions[i]
		if r.Shared {
			shared += r.Bytes
		} else {
			own += r.Bytes * g.threads
		}
		accesses += r.Accesses
		reads += r.Accesses / w.Config.System.Outstanding(r)
	}
	if own+shared <= 0 || accesses <= 0 {
		return
	}
	bytes := g.llcBytes * own / (own + shared) / g.threads // 1
	if shared > 0 && !w.below(t, to.llc) {
		bytes += g.llcBytes * shared / (own + shared)
	}
	bytes = min(bytes, w.Config.System.Domains[to.llc].LLC)
	hits := max(0, 1-(g.local+g.remote)/g.requests) // 2
	t.cold.lines = bytes / memsys.LineBytes * hits
	t.cold.l2 = min(t.cold.lines, w.Config.System.L2/memsys.LineBytes)                                   // 4
	t.cold.each = max(0, w.latency(t, to.node)-w.Config.System.LLCCycles) * reads / accesses * t.wl.Slow // 3
}

// below reports whether another thread of a thread's workload is below an LLC.
func (w *World) below(t *thread, d int) bool {
	for i := range t.wl.threads {
		if o := &t.wl.threads[i]; o != t && o.cpu >= 0 && w.cpus[o.cpu].llc == d {
			return true
		}
	}
	return false
}

// latency is the latency of a thread's memory from a node, on an idle machine.
func (w *World) latency(t *thread, node int) (cycles float64) {
	for m := range w.nodes {
		if share := w.offer(t, m); share > 0 {
			cycles += share * w.Config.System.Latency[node][m]
		}
	}
	return cycles
}

// warm is the part of the next step in which threads bring lines, before they do anything
// else.
func (w *World) warm(wl *workload, dt float64) {
	for i := range wl.threads {
		t := &wl.threads[i]
		if t.cold.paid = 0; t.cold.lines > 0 {
			need := t.cold.lines * t.cold.each / w.Config.System.Hz / dt
			t.cold.paid = min(t.got, need)
		}
	}
}

// able is the CPU time that a thread has for operations.
func (t *thread) able() float64 { return t.got - t.cold.paid }

// bring records what warm let a thread bring, and returns its cycles.
func (w *World) bring(t *thread, dt float64, c *sim.Counts) (cycles float64) {
	k := &t.cold
	if k.lines <= 0 {
		return 0
	}
	cycles = k.paid * dt * w.Config.System.Hz
	part := 1.0
	if need := k.lines * k.each; need > 0 {
		part = min(1, cycles/need)
	}
	lines, l2 := part*k.lines, part*k.l2
	node := w.cpus[t.cpu].node
	near := w.offer(t, node)
	c.Local += lines * near
	c.Remote += lines * (1 - near)
	c.Stall += cycles
	c.Requests += l2
	c.Waits += cycles
	t.win.requests += l2
	t.win.waits += cycles
	k.l2 -= l2
	if k.lines -= lines; part == 1 || k.lines < 1 {
		*k = cold{}
	}
	return cycles
}
