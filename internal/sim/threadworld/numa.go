// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"time"

	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
)

const (
	// numaRetry is how often a thread that is not at its preferred node tries to go there:
	// a second in jiffies (numa_migrate_preferred: interval).
	numaRetry = time.Second
	// numaMove is the probability that a try succeeds; as in sim/linux.
	numaMove = 0.5
	// numaBetter is how much more a node must offer.
	numaBetter = 1.1
	// numaSwap is the least that a swap of two threads must gain, of both threads' faults
	// (task_numa_compare: SMALLIMP, 30 of 1000).
	numaSwap = 0.03
	// mostSlow bounds what balancing can take of the time.
	mostSlow = 1
)

// numa is NUMA balancing's state of a workload.
type numa struct{ next time.Duration } // when its threads choose where to go

// numaBalance is NUMA balancing for some seconds, in its threads' time.
//
//  1. linux.Host.Balance scans, faults and moves pages, by where threads ran. It does to
//     rows what hint faults do to the pages of each thread (pages.go).
//  2. The CPU time that it took makes their operations more expensive.
//  3. Threads prefer the node of most of their faults, and go there one by one
//     (task_numa_placement, task_numa_migrate). They must gain a tenth. They go to an idle
//     CPU, or to the CPU of a thread that loses less by the swap.
func (w *World) numaBalance(wl *workload, seconds float64) {
	mode := wl.Group.Policy.Mode
	if !w.Config.Linux.NUMABalancing || mode == linux.Bind || mode == linux.Interleave {
		return
	}
	used := detmath.Sum(wl.used) / seconds
	if used <= few {
		return
	}
	for n := range wl.used {
		wl.Group.Used[n] = wl.used[n] / seconds
	}
	w.Open(wl.Workload)
	cpu := w.Host.Balance(seconds, &wl.Group) // 1
	w.Close(wl.Workload)
	slow := 1 + min(mostSlow, cpu/(used*seconds)) // 2
	if math.Abs(slow-wl.Slow) > noticed {
		wl.Slow, w.changed = slow, true
	}
	if w.Now() < wl.numa.next || wl.Spec.Start.Pinned {
		return
	}
	wl.numa.next = w.Now() + numaRetry/2 + time.Duration(wl.random.Uint64()%uint64(numaRetry))
	for i := range wl.threads {
		w.follow(&wl.threads[i]) // 3
	}
}

// offer is the share of a thread's faults for pages of a node.
func (w *World) offer(t *thread, node int) float64 {
	m, all := &t.wl.Group.Memory, float64(len(t.wl.threads))
	held := detmath.Sum(t.private) + detmath.Sum(m.Shared)/all
	if held <= 0 {
		return 0
	}
	return (t.private[node] + m.Shared[node]/all) / held
}

// follow is number 3.
func (w *World) follow(t *thread) {
	from, best, most := w.cpus[t.cpu].node, -1, 0.0
	here := w.offer(t, from)
	for n := range w.nodes {
		if _, cpus, _ := w.idleOn(t, n); cpus > 0 && (best < 0 || w.offer(t, n) > most) {
			best, most = n, w.offer(t, n)
		}
	}
	t.prefer = -1
	if most > numaBetter/float64(len(w.nodes)) {
		t.prefer = best
	}
	if best == from || most <= numaBetter*here || t.wl.random.Float() >= numaMove {
		return
	}
	if c := w.idleIn(t, best); c >= 0 {
		w.put(t, c)
		return
	}
	w.swap(t, best)
}

// idleIn is a CPU of a node that a thread may use and that is idle now; -1: none.
func (w *World) idleIn(t *thread, n int) int {
	if idle, _, _ := w.idleOn(t, n); idle <= near {
		return -1
	}
	c := w.idlestCPU(t, n)
	if idle := w.cpus[c].idle(); idle >= 1-near || t.wl.random.Float() < idle {
		return c
	}
	return -1
}

// swap exchanges the thread with the one on a node for which both together gain most.
func (w *World) swap(t *thread, n int) {
	from := w.cpus[t.cpu].node
	gain, best, other := w.offer(t, n)-w.offer(t, from), numaSwap, (*thread)(nil)
	for _, i := range w.nodes[n].cpus {
		if !has(t.mask, i) {
			continue
		}
		for _, o := range w.cpus[i].threads {
			if o.pinned || o.wl.Spec.Start.Pinned || !has(o.mask, t.cpu) {
				continue
			}
			if both := gain + w.offer(o, from) - w.offer(o, n); both > best {
				best, other = both, o
			}
		}
	}
	if other != nil {
		a, b := t.cpu, other.cpu
		w.put(t, b)
		w.put(other, a)
	}
}
