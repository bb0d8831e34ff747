// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"slices"

	"homenode/internal/sim/detmath"
)

const (
	// imbalance is how much busier than the mean a node may be: imbalance_pct is 117
	// (sched/topology.c, sd_init).
	imbalance = 0.17
	// balanceSeconds is the time constant of load_balance between nodes. Its interval is 1
	// ms per CPU of the domain, 16 times that from a busy CPU (sd_init: min_interval,
	// busy_factor): 0.1 to 2 s on 128 CPUs. Estimated; a larger value makes an overloaded
	// node wait longer for relief.
	balanceSeconds = 1.0
	// wakeCross is the probability that a wake-up of a thread whose CPU is busy ends on a
	// newly chosen node: its waker must be elsewhere, and wake_affine must prefer the
	// waker's CPU (wake_wide usually prevents it). Estimated: with this value, threads that
	// wake 100 to 1,000 times per second have, under NUMA balancing, the 0.5 to 0.65 of
	// local accesses that MAO saw in its fleet (57.76 %). A larger value mixes private
	// pages faster.
	wakeCross = 0.002
	// swapRate is how often per second load_balance moves a thread of a busy machine to
	// another node for no lasting reason: once in 30 s. Estimated.
	swapRate = 1.0 / 30
)

// wander is where a group's threads are: at base on average, with deviations off.
type wander struct {
	base, off, last []float64
	rate            float64 // how often per second a thread is placed anew
	// due is the part of rate × seconds that was not yet applied to base and rows: NUMA
	// balancing works against it at the same time, so Balance does both in turns. aim is
	// the target.
	due float64
	aim []float64
}

// settle makes the present places of the threads the intended ones.
func (g *Group) settle() {
	copy(g.wander.base, g.On)
	copy(g.wander.last, g.On)
	clear(g.wander.off)
}

// Settle accepts where the caller has put the threads, and their rows of private pages, as
// the intended places.
func (g *Group) Settle() { g.settle() }

// wander moves threads for dt seconds. Pages stay; private pages change their row.
//
//  1. aim: each group's threads in proportion to its CPUs, times a factor per node such
//     that no node is busier or idler than the mean by more than imbalance, as far as cpusets
//     and pinned threads allow (by iterative proportional fitting).
//  2. load_balance (find_busiest_group, calculate_imbalance): if a node is busier than
//     imbalance allows, threads leave for the aim until it is not; the excess decays with
//     balanceSeconds.
//  3. select_task_rq_fair: a wake-up whose CPU is busy goes where one is idle. Each thread
//     is placed anew at a rate, by the aim. After dt, exp(-rate × dt) of them never were.
//     Rows mix in the same way: an arriving thread brings pages from elsewhere.
//  4. As many threads are where they are by chance, their numbers deviate from the mean as
//     a multinomial's do: Ornstein-Uhlenbeck, variance ≤ share × (1 − share) × threads, exact
//     for any dt. Where no CPU is idle there is no such freedom.
//
// Rows follow the mean. The few threads of step 4 are those that move back and forth.
//
// With dt 0 nothing moves: a second Run for the same time, as other workloads turned out to
// want more, leaves what is due to Balance, and draws nothing.
func (h *Host) wander(dt float64) {
	if dt <= 0 {
		return
	}
	for _, g := range h.Groups {
		h.catchUp(g)
		if !slices.Equal(g.On, g.wander.last) {
			g.settle() // the caller has put the threads there
		}
	}
	if !h.Settings.LoadBalance && !h.Settings.WakePlacement {
		for _, g := range h.Groups {
			g.wander.rate = 0
		}
		return
	}
	even := h.aim() // 1
	left := gone(dt / balanceSeconds)
	pull := h.excess(even) * left
	s, n := &h.scratch, len(h.Nodes)
	for i, g := range h.Groups {
		aim := s.aim[i*n : i*n+n]
		if !g.free() {
			g.wander.rate = 0
			continue
		}
		if own := h.excessOf(g, s.asked[i], aim) * left; own > 0 || pull > 0 { // 2
			g.drift(aim, max(own, pull), s.a)
		}
		h.jump(g, aim, dt) // 3, 4
	}
}

// free reports whether a group has threads that can be on more than one node.
func (g *Group) free() bool {
	nodes := 0
	for _, cpus := range g.CPUs {
		if cpus > 0 {
			nodes++
		}
	}
	return nodes > 1 && !g.Pinned && g.Threads > 0
}

// aim is step 1 of wander. It returns the mean use of CPUs.
func (h *Host) aim() (even float64) {
	s, cpus := &h.scratch, 0.0
	for k := range h.Nodes {
		s.pull[k] = 1
		cpus += h.Nodes[k].CPUs
	}
	even = detmath.Sum(s.asked) / cpus
	low, high := even*(1-imbalance), even*(1+imbalance)
	for range 8 {
		h.aimBy(s.pull)
		worst := 0.0
		for k, use := range s.use {
			if h.Nodes[k].CPUs <= 0 || use <= 0 {
				continue
			}
			off := min(max(use, low), high) / use
			worst = max(worst, math.Abs(off-1))
			s.pull[k] = min(max(s.pull[k]*off, 1e-3), 1e3)
		}
		if worst < 0.005 {
			break
		}
	}
	return even
}

// aimBy sets aim, and computes the use of each node that results.
func (h *Host) aimBy(pull []float64) {
	s, n := &h.scratch, len(h.Nodes)
	clear(s.use)
	for i, g := range h.Groups {
		aim, all := s.aim[i*n:i*n+n], 0.0
		for k := range aim {
			aim[k] = g.CPUs[k] * pull[k]
			if g.Pinned {
				aim[k] = g.On[k]
			}
			all += aim[k]
		}
		over := 0.0
		for k := range aim {
			aim[k] /= max(all, 1e-300)
			over = max(over, aim[k]*s.asked[i]-g.CPUs[k])
		}
		if over > 0 && !g.Pinned {
			g.narrow(aim, s.asked[i])
		}
		for k := range aim {
			s.use[k] += s.asked[i] * aim[k]
		}
	}
	for k := range n {
		s.use[k] /= max(h.Nodes[k].CPUs, 1e-300)
	}
}

// narrow limits an aim to a node's CPUs in the cpuset, as far as all of them together are
// enough for the request. The excess goes where there is room.
func (g *Group) narrow(aim []float64, asked float64) {
	most := max(1/asked, 1/detmath.Sum(g.CPUs)) // of the asked, for a CPU
	over, room := 0.0, 0.0
	for k, cpus := range g.CPUs {
		left := cpus*most - aim[k]
		room += max(left, 0)
		over += max(-left, 0)
	}
	if over <= 0 || room <= 0 {
		return
	}
	for k, cpus := range g.CPUs {
		left := cpus*most - aim[k]
		aim[k] += min(left, 0) + max(left, 0)*min(over/room, 1)
	}
}

// excess is the part of the way to the aim after which no node is too busy. A NUMA domain
// lets some threads be together in any case (adjust_numa_imbalance).
func (h *Host) excess(even float64) float64 {
	s, part := &h.scratch, 0.0
	if !h.Settings.LoadBalance {
		return 0
	}
	clear(s.load)
	for i, g := range h.Groups {
		if g.Threads <= 0 {
			continue
		}
		each := s.asked[i] / g.Threads
		for k := range s.load {
			s.load[k] += each * g.wander.base[k]
		}
	}
	for k := range s.load {
		if cpus := h.Nodes[k].CPUs; cpus > 0 {
			part = max(part, beyond(s.load[k], s.use[k]*cpus, even*cpus, cpus))
		}
	}
	return part
}

// beyond is the part of the way from the present busy CPUs to those aimed at, after which
// the number above the mean is no more than imbalance allows; or, where the aim itself is
// above that, little more than the aim.
func beyond(busy, aim, even, cpus float64) float64 {
	allowed := max((1+imbalance)*even, mayBeTogether(cpus), 1.05*aim)
	if busy <= allowed {
		return 0
	}
	return (busy - allowed) / (busy - aim)
}

// excessOf is the same for a group on a cpuset that has only some of a node's CPUs.
func (h *Host) excessOf(g *Group, asked float64, aim []float64) float64 {
	if !h.Settings.LoadBalance {
		return 0
	}
	part, each := 0.0, asked/detmath.Sum(g.CPUs)
	for k, cpus := range g.CPUs {
		if cpus > 0 && cpus < h.Nodes[k].CPUs {
			use := asked * (g.wander.base[k] / g.Threads)
			part = max(part, beyond(use, asked*aim[k], each*cpus, cpus))
		}
	}
	return part
}

// drift moves part of the way from base to the aim, and rows with it.
func (g *Group) drift(aim []float64, part float64, to []float64) {
	for k := range to {
		mean := g.Threads * aim[k]
		to[k] = g.wander.base[k] + part*(mean-g.wander.base[k])
	}
	g.rearrange(to)
}

// jump is steps 3 and 4 of wander.
func (h *Host) jump(g *Group, aim []float64, dt float64) {
	busy := 0.0
	for k := range aim {
		busy += aim[k] * min(h.scratch.use[k], 1)
	}
	idle, rate := 1-busy, 0.0
	if idle < 1e-9 {
		idle = 0 // the rest of sums depends on their order
	}
	if h.Settings.WakePlacement {
		rate += g.WakeRate * wakeCross * busy * idle
	}
	if h.Settings.LoadBalance {
		rate += swapRate * busy * busy
	}
	g.wander.rate = rate
	if rate <= 0 {
		g.appear(g.wander.base)
		return
	}
	anew := gone(rate * dt)
	g.stray(h.scratch.order, anew, aim, g.Threads*idle)
	if !h.balances(g) {
		g.mix(anew, aim, h.scratch.b)
		g.appear(g.wander.base)
		return
	}
	g.wander.due = rate * dt
	for k, base := range g.wander.base {
		g.wander.aim[k] = aim[k]
		h.scratch.a[k] = base + anew*(g.Threads*aim[k]-base)
	}
	g.appear(h.scratch.a)
}

// catchUp applies what is due.
func (h *Host) catchUp(g *Group) {
	if g.wander.due > 0 {
		g.mix(gone(g.wander.due), g.wander.aim, h.scratch.b)
		g.wander.due = 0
	}
}

// gone is 1 - exp(-x), x ≥ 0, to a relative 1e-14 for any small x: the series for x/64 or
// less, then doubled repeatedly, as after twice the time g + (1 − g) g is gone. A step of
// time spends most on it, and it costs half as much as exact.Exp.
func gone(x float64) float64 {
	if x > 40 {
		return 1 // exact to the last bit
	}
	doubled, y := 6, x/64
	for ; y > 1.0/32; doubled++ {
		y /= 2
	}
	p := 1 - y*(1.0/7)
	p = 1 - y*(1.0/6)*p
	p = 1 - y*(1.0/5)*p
	p = 1 - y*(1.0/4)*p
	p = 1 - y*(1.0/3)*p
	p = 1 - y*(1.0/2)*p
	p *= y
	for range doubled {
		p *= 2 - p
	}
	return p
}

// mix places a part of the threads anew, by aim.
func (g *Group) mix(part float64, aim, column []float64) {
	n := len(aim)
	private := g.Memory.Private
	clear(column)
	for i, pages := range private {
		column[i%n] += pages
	}
	for t := range n {
		for k := range n {
			private[t*n+k] += part * (aim[t]*column[k] - private[t*n+k])
		}
		mean := g.Threads * aim[t]
		g.wander.base[t] += part * (mean - g.wander.base[t])
	}
}

// stray is step 4 of wander. A multinomial's deviations are drawn one node after the other:
// given those before, a node's deviation has the mean −Σ before × share / rest and the
// variance share × (rest − share) / rest, where rest is what is left of 1.
func (g *Group) stray(order []int, anew float64, aim []float64, threads float64) {
	stay := 1 - anew
	fresh := math.Sqrt(anew * (1 + stay) * threads) // 1 − stay²
	rest, before := 1.0, 0.0
	for _, k := range order {
		off := &g.wander.off[k]
		if aim[k] <= 0 {
			*off = 0
			continue
		}
		draw := -before
		if rest-aim[k] > 1e-12 {
			deviation := math.Sqrt(aim[k] * (rest - aim[k]) / rest)
			draw = deviation*g.Random.Normal() - before*aim[k]/rest
		}
		*off = stay**off + fresh*draw
		rest, before = rest-aim[k], before+draw
	}
}

// appear puts threads where base and off say, none below 0.
func (g *Group) appear(base []float64) {
	all := 0.0
	for k := range g.On {
		g.On[k] = max(base[k]+g.wander.off[k], 0)
		if g.CPUs[k] <= 0 {
			g.On[k] = 0
		}
		all += g.On[k]
	}
	if all > 0 {
		all = g.Threads / all
	}
	for k := range g.On {
		g.On[k] *= all
	}
	copy(g.wander.last, g.On)
}

// rearrange moves threads to the nodes in to. Threads that leave a node go to all nodes
// that gain, in proportion to their gain, and take their rows along.
func (g *Group) rearrange(to []float64) {
	base, private, n := g.wander.base, g.Memory.Private, len(to)
	gain := 0.0
	for k := range to {
		gain += max(to[k]-base[k], 0)
	}
	for k := range to {
		if to[k] >= base[k] || gain <= 0 {
			continue
		}
		part := (base[k] - max(to[k], 0)) / base[k]
		for m := range to {
			if to[m] <= base[m] {
				continue
			}
			go2 := part * ((to[m] - base[m]) / gain)
			for i := range n {
				private[m*n+i] += go2 * private[k*n+i]
			}
		}
		for i := range n {
			private[k*n+i] -= part * private[k*n+i]
		}
	}
	copy(base, to)
}
