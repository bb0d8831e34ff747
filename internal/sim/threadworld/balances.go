// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"time"

	"homenode/internal/sim/detmath"
)

const (
	// idleEvery is the interval of an idle CPU's balancing, per CPU of the domain (sd_init:
	// min_interval); it is twice that while the CPU finds nothing (max_interval).
	idleEvery = time.Millisecond
	// busyFactor is sd_init's: a busy CPU balances this many times less often.
	busyFactor = 16
	// busyEvery is how often one of an LLC's busy CPUs takes a thread from another that has
	// more. Each balances every 16 ms per CPU of the domain, so one of them does every 16
	// ms. Moving a thread for an imbalance of less than one takes two to four turns
	// (detach_tasks: load >> nr_balance_failed).
	busyEvery = 64 * time.Millisecond
	// coreFailures is the number of failures until an idle core takes a running thread from
	// a busy one (need_active_balance: nr_balance_failed > cache_nice_tries + 2).
	coreFailures = triesNode + 3
	// crowded is how much more than a CPU its threads must want.
	crowded = 0.05
)

// balance moves threads from CPUs that have more to do than others. Each turn is one
// load_balance of a scheduling domain, at the kernel's intervals; nothing depends on how
// often loads change. A CPU that is busy for a part of its time counts as idle with the
// probability of the rest. It has a waiting thread with the probability that two of its
// threads want to run.
//
//  1. Below an LLC, idle CPUs take waiting threads from the busiest CPU (newidle_balance,
//     load_balance).
//  2. Busy CPUs below an LLC balance: the CPU with one thread more changes, so that all
//     threads have their turn (calculate_imbalance, detach_tasks).
//  3. An idle core takes a thread from a core whose siblings are both busy
//     (SD_PREFER_SIBLING).
//  4. Beyond the LLC, level by level: LLCs of a node, near nodes, farther ones (load_balance.go).
//  5. Threads of busy CPUs are swapped (swaps.go).
func (w *World) balance(step time.Duration) {
	if !w.Config.Linux.LoadBalance {
		return
	}
	w.tally()
	at := w.Now() + step
	for d := range w.llcs {
		x := &w.llcs[d]
		if x.waits > near && x.idle > near {
			w.pullIdle(d, step.Seconds()) // 1
		}
		if x.busy < at && x.queue > 0 {
			x.busy = at + w.jitter(busyEvery)
			w.evenOut(d) // 2
		}
		if w.Config.System.Threads > 1 && x.core < at && x.idle > near {
			x.core = at + w.jitter(idleEvery*time.Duration(len(x.cpus)*coreFailures))
			w.idleCore(d) // 3
		}
	}
	for i := range w.levels {
		if w.levels[i].next < at {
			w.loadBalance(&w.levels[i], at) // 4
		}
	}
	w.swapSometimes(at) // 5
}

// jitter varies a time by up to a half, so that CPUs do not balance in step.
func (w *World) jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(w.random.Uint64()%uint64(max(d, 1)))
}

// tally computes how busy LLCs are.
func (w *World) tally() {
	if w.tallied {
		return
	}
	w.tallied = true
	for d := range w.llcs {
		x := &w.llcs[d]
		x.crowd = crowd{}
		for _, i := range x.cpus {
			x.count(&w.cpus[i])
		}
	}
}

// count adds a CPU.
func (x *crowd) count(c *cpu) {
	x.size++
	c.waits = 0
	if len(c.threads) == 0 {
		x.idle += c.room
		x.load += 1 - c.room
		return
	}
	idle := c.idle()
	x.load += c.load + 1 - c.room
	x.idle += idle
	x.varyIdle += idle * (1 - idle)
	none, one := 1.0, 0.0
	for _, t := range c.threads {
		p := min(1, t.want)
		x.vary += p * (1 - p)
		one = one*(1-p) + none*p
		none *= 1 - p
	}
	if len(c.threads) == 1 {
		return
	}
	c.waits = max(0, 1-none-one)
	if c.load > c.room+crowded {
		c.waits = max(c.waits, min(1, c.load-c.room))
		x.queue++
	}
	x.waits += c.waits
}

func (x *crowd) merge(o *crowd) {
	x.size += o.size
	x.load += o.load
	x.idle += o.idle
	x.vary += o.vary
	x.varyIdle += o.varyIdle
	x.waits += o.waits
	x.queue += o.queue
}

// pullIdle is number 1 of balance. Each idle CPU balances every idleEvery per CPU of the
// domain. That it also does so whenever it goes idle is not counted, as its threads'
// wake-ups search for idle CPUs themselves (wakes.go). It takes a thread that gets a larger
// part of a CPU there than it had.
func (w *World) pullIdle(d int, dt float64) {
	x := &w.llcs[d]
	every := idleEvery.Seconds() * x.size
	for range x.cpus {
		if x.waits <= near || x.idle <= near {
			return
		}
		t, to := w.relief(x.cpus)
		if t == nil {
			return
		}
		looks := x.idle * dt / every
		if w.random.Float() >= 1-detmath.Exp(-(looks*w.cpus[t.cpu].waits)) {
			return
		}
		w.put(t, to)
		w.tally()
	}
}

// relief picks a thread of the busiest CPU among those where one waits, and a CPU with time
// for it.
func (w *World) relief(cpus []int) (*thread, int) {
	src := w.room.some[:0]
	for _, i := range cpus {
		if w.cpus[i].waits > near {
			src = append(src, i)
		}
	}
	w.room.some = src
	for len(src) > 0 {
		k := w.busiest(src)
		if t, to := w.movableTo(src[k], cpus, true, false); t != nil {
			return t, to
		}
		src = append(src[:k], src[k+1:]...)
	}
	return nil, -1
}

// busiest is the index of a random one of the CPUs with the most to do.
func (w *World) busiest(cpus []int) int {
	best := nothing
	for k, i := range cpus {
		best.offer(k, w.cpus[i].load, 0, &w.random)
	}
	return best.at
}

// movableTo picks a random thread of a CPU, and a CPU that it may use and that would then
// have no more to do than this one has now; with idle: less. A thread whose locality would
// degrade stays, unless dragged.
func (w *World) movableTo(from int, to []int, idle, dragged bool) (*thread, int) {
	all := w.cpus[from].threads
	if len(all) == 0 || len(to) == 0 {
		return nil, -1
	}
	first := w.random.Below(len(all))
	for i := range all {
		t := all[(first+i)%len(all)]
		if !dragged && w.degrades(t, w.cpus[to[0]].node) {
			continue
		}
		if c := w.target(t, from, to, idle); c >= 0 {
			return t, c
		}
	}
	return nil, -1
}

// degrades is migrate_degrades_locality: NUMA balancing wants the thread on this node, and
// does not want all threads of its CPU there.
func (w *World) degrades(t *thread, to int) bool {
	c := &w.cpus[t.cpu]
	if t.prefer < 0 || t.prefer != c.node || t.prefer == to {
		return false
	}
	for _, o := range c.threads {
		if o.prefer != c.node {
			return true
		}
	}
	return false
}

// target is the CPU with the least to do, on the core with the least to do; random among
// equals.
func (w *World) target(t *thread, from int, to []int, idle bool) int {
	best := nothing
	limit := w.cpus[from].load - t.want
	if idle {
		limit -= crowded
	}
	for _, i := range to {
		c := &w.cpus[i]
		if i == from || c.load > limit+near || idle && c.idle() <= crowded || !has(t.mask, i) {
			continue
		}
		best.offer(i, -c.load, -w.coreLoad(i), &w.random)
	}
	return best.at
}

// evenOut is number 2 of balance: of two CPUs whose load differs by a thread, the one with
// less takes one, if it then has no more than the other had.
func (w *World) evenOut(d int) {
	cpus := w.llcs[d].cpus
	some := w.room.some[:0]
	for _, i := range cpus {
		if c := &w.cpus[i]; c.load > c.room+crowded && len(c.threads) > 1 {
			some = append(some, i)
		}
	}
	w.room.some = some
	if len(some) == 0 {
		return
	}
	if t, c := w.movableTo(some[w.busiest(some)], cpus, false, true); t != nil {
		w.put(t, c)
		w.tally()
	}
}

// idleCore is number 3 of balance.
func (w *World) idleCore(d int) {
	idle, double := -1, -1
	for _, c := range w.llcs[d].cpus {
		if w.coreLoad(c) <= crowded {
			idle = c
		} else if w.coreLoad(c) > 1+crowded && w.cpus[c].load > near && len(w.cpus[c].threads) == 1 {
			double = c
		}
	}
	if idle >= 0 && double >= 0 && w.random.Float() < w.cpus[double].load {
		w.moveRunning(double, w.cores[w.cpus[idle].core].cpus)
		w.tally()
	}
}

// moveRunning moves a CPU's thread to the idlest of some CPUs, on the idlest core, if that
// is idler than its own. It reports whether it could.
func (w *World) moveRunning(from int, to []int) bool {
	for _, t := range w.cpus[from].threads {
		best, most, ties := -1, 0.0, 0
		for _, i := range to {
			idle := w.cpus[i].idle() - few*math.Round(w.coreLoad(i)*100) // of equal CPUs, one of an idle core
			if w.cpus[i].idle() <= crowded || w.cpus[i].load > w.cpus[from].load-crowded || !has(t.mask, i) {
				continue
			}
			switch {
			case best < 0 || idle > most+few/2:
				best, most, ties = i, idle, 1
			case idle > most-few/2:
				if ties++; w.random.Below(ties) == 0 {
					best = i
				}
			}
		}
		if best >= 0 {
			w.put(t, best)
			return true
		}
	}
	return false
}
