// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"homenode/internal/set"
	"homenode/internal/sim/detmath"
)

// thread is a thread of a workload.
type thread struct {
	wl        *workload
	id, index int
	cpu       int        // index in World.cpus; -1: it is not present
	own       set.CPUSet // its affinity; empty: its workload's CPUs
	ours      bool       // own was set by a step
	pinned    bool       // own was set by another process
	mask      []uint64   // CPUs that it may use; wl.mask where own says nothing
	private   []float64  // pages by node
	key       uint64     // key of where its pages are, in steps of keySteps
	prefer    int        // node, NUMA balancing's choice; -1: none

	want, got float64 // CPUs' worth of time
	more      float64 // that it takes over
	group     int     // index in World.groups
	last      float64 // cycles of an operation, before groups were made anew
	bin       int     // of tail
	per       float64 // seconds per operation; bin belongs to it
	held      float64 // seconds since it last did an operation

	win        counters
	cold       cold
	cpuSeconds float64 // since the start
	ops        float64
	moves      int // between nodes
}

// counters are sums since the last Window.
type counters struct{ cpu, cycles, instructions, requests, waits float64 }

// allow computes which CPUs it may use: of its cpuset, the CPUs of its own affinity, or all
// if that leaves none (cpuset_update_tasks_cpumask, __set_cpus_allowed_ptr).
func (w *World) allow(t *thread) {
	t.mask = t.wl.mask
	if both := t.own.Intersect(t.wl.CPUs); !both.IsEmpty() && both != t.wl.CPUs {
		t.mask = w.maskOf(both)
	}
}

// allowed is its affinity as a set.
func (t *thread) allowed() set.CPUSet {
	if both := t.own.Intersect(t.wl.CPUs); !both.IsEmpty() {
		return both
	}
	return t.wl.CPUs
}

// put moves a thread to a CPU.
func (w *World) put(t *thread, cpu int) {
	if t.cpu == cpu {
		return
	}
	to := &w.cpus[cpu]
	if t.cpu >= 0 {
		from := &w.cpus[t.cpu]
		if from.node != to.node {
			t.moves++
			w.carry(t, from.node, to.node)
		}
		if from.llc != to.llc {
			w.chill(t, from, to)
			w.changed = true
		}
		w.leave(t)
	} else {
		w.changed = true
	}
	t.cpu = cpu
	to.threads = append(to.threads, t)
	to.load += t.want
	t.wl.Group.On[to.node]++
	w.stale, w.tallied = true, false
}

// leave takes a thread off its CPU.
func (w *World) leave(t *thread) {
	c := &w.cpus[t.cpu]
	for i, x := range c.threads {
		if x == t {
			last := len(c.threads) - 1
			c.threads[i] = c.threads[last]
			c.threads = c.threads[:last]
			break
		}
	}
	if c.load -= t.want; len(c.threads) == 0 {
		c.load = 0
		w.newlyIdle(c.node)
	}
	t.wl.Group.On[c.node]--
	t.cpu = -1
	w.tallied = false
}

// evict moves threads that may no longer stay where they are (__migrate_task,
// cpumask_any_and_distribute: to any allowed CPU, in turn).
func (w *World) evict(wl *workload) {
	for i := range wl.threads {
		if t := &wl.threads[i]; !has(t.mask, t.cpu) {
			w.put(t, w.leastLoaded(t, t.mask))
		}
	}
}

// leastLoaded is the CPU of a set with the least to do, on the core with the least to do;
// random among equals.
func (w *World) leastLoaded(t *thread, mask []uint64) int {
	best := nothing
	for c := range w.cpus {
		if !has(mask, c) {
			continue
		}
		load, core := w.cpus[c].load, w.coreLoad(c)
		if c == t.cpu {
			load, core = load-t.want, core-t.want
		}
		best.offer(c, -load, -core, &t.wl.random)
	}
	return best.at
}

// choice is the best of what it was offered so far, by two scores, the first one first; one
// of several equals by chance.
type choice struct {
	at            int // -1: nothing
	first, second float64
	ties          int
}

var nothing = choice{at: -1}

func (c *choice) offer(at int, first, second float64, r *detmath.Random) {
	switch {
	case c.at < 0 || first > c.first+near || first > c.first-near && second > c.second+near:
		*c = choice{at, first, second, 1}
	case first > c.first-near && second > c.second-near:
		if c.ties++; r.Below(c.ties) == 0 {
			c.at = at
		}
	}
}

// near is the difference up to which amounts of CPU time are equal.
const near = 1e-6
