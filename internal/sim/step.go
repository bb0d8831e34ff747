// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"homenode/internal/sim/exact"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

const (
	// mostRounds of giving out CPU and of finding cycles in a step. A second one is
	// taken only where what a workload should have asked for is known too late.
	mostRounds = 3
	// shortage is the share of the operations asked for that may be missing for want of
	// CPU time before CPU is given out anew. What is missing then waits for the next step.
	shortage = 1e-4
	// farShare is by how much the share of private accesses may be off.
	farShare = 0.02
	// few threads on a node, or CPUs, are none.
	few = 1e-6
)

// step is one step of time; the numbers are doc.go's.
func (w *World) step(step time.Duration) {
	dt := step.Seconds()
	for _, wl := range w.live {
		wl.ask(&w.clock, w.now, step) // 1
		w.repay(wl)                   // 1
		w.grow(wl, dt-wl.now.still)   // 1
	}
	w.host.Reclaim(dt) // 2
	w.balance(dt)
	w.planMoves(dt)
	w.settle(dt)
}

// settle finds where CPU time given, cycles per operation and operations agree.
//
//  1. Wants come from the last known cycles; Linux gives CPU by them (doc.go, 2).
//  2. What is idle then is there for those who turn out to need more: the scheduler
//     lets nobody wait beside an idle CPU.
//  3. The memory system says what operations cost then (3).
//  4. If somebody lacks CPU time who should have asked for more: again, without time
//     passing. Who waits at barriers loads the memory system by the pace of the slowest.
func (w *World) settle(dt float64) {
	w.takeMovers(dt)
	for round, run := 1, dt; ; round, run = round+1, 0 {
		w.want(dt)
		w.host.Run(run, w.wants) // 1
		w.idleNow()              // 2
		w.load(dt)
		res := w.solver.Solve(&w.c.System, w.loads)   // 3
		if !w.learn(dt, res) || round == mostRounds { // 4
			if w.hold(res) {
				res = w.solver.Solve(&w.c.System, w.loads)
				w.learn(dt, res)
			}
			w.account(dt, res)
			w.movePages(dt, res)
			break
		}
	}
	w.giveMovers()
}

// want is how many CPUs' worth of time each could use.
func (w *World) want(dt float64) {
	w.wants = w.wants[:0]
	for _, wl := range w.live {
		need, most := w.need(wl, dt)
		w.wants = append(w.wants, min(most, need))
	}
}

// need is how many CPUs' worth of time a workload seems to need, and how many it can
// use at most.
func (w *World) need(wl *workload, dt float64) (need, most float64) {
	if most = wl.group.Threads; wl.group.Quota > 0 {
		most = min(most, wl.group.Quota)
	}
	most *= 1 - wl.now.still/dt
	seconds := w.mean(wl) / w.c.System.Hz // of an operation
	if wl.now.closed {
		most *= wl.now.duty
		return most * seconds / (seconds + wl.spec.Demand.Think.Seconds()), most
	}
	return w.opsAsked(wl, dt) * seconds, most
}

// mean is the cycles of an operation over all CPUs that it was given last, or else
// where its threads are.
func (w *World) mean(wl *workload) float64 {
	cpus, ops := 0.0, 0.0
	for pass := range 2 {
		by := wl.group.Used
		if pass == 1 {
			by = wl.group.On
		}
		for d, dom := range w.c.System.Domains {
			part := float64(by[dom.Node] * wl.share[d])
			cpus += part
			ops += part / wl.cycles[d]
		}
		if ops > 0 {
			return cpus / ops
		}
	}
	return wl.cycles[0]
}

// load is what runs where, for the memory system: one Load a workload and domain, in
// the order of live, then those of the movers.
func (w *World) load(dt float64) {
	w.loads, w.shares = w.loads[:0], w.shares[:0]
	for i, wl := range w.live {
		w.loadOf(i, wl, dt)
	}
	w.loadMovers(dt)
}

func (w *World) loadOf(i int, wl *workload, dt float64) {
	first, rate, all := len(w.loads), 0.0, sum(wl.group.Used)
	_, most := w.need(wl, dt)
	for n, p := range w.places {
		on, used := wl.group.On[n], wl.group.Used[n]
		if on <= few && used <= few {
			continue
		}
		home, lines := w.home(wl, n, wl.private), []float64(nil)
		if wl.spec.Work.Adds > 0 {
			lines = w.home(wl, n, 0)
		}
		could := float64(used * (1 + w.spare(wl, n, most, all)))
		for _, d := range p.domains {
			if wl.share[d] == 0 {
				continue
			}
			cpus := float64(could * wl.share[d])
			w.loads = append(w.loads, memsys.Load{
				Workload: i, Domain: d, CPUs: cpus, Threads: max(cpus, float64(on*wl.share[d])),
				Work: &wl.works[wl.now.phase], Home: home, Shared: lines, Slow: wl.slow,
				Cache: float64(wl.class.Cache), Bandwidth: float64(wl.class.Bandwidth),
			})
			rate += float64(used*wl.share[d]) / wl.cycles[d]
		}
	}
	ops := w.opsAsked(wl, dt)
	for k := first; k < len(w.loads); k++ {
		l := &w.loads[k]
		node := w.c.System.Domains[l.Domain].Node
		switch part := float64(wl.group.Used[node]*wl.share[l.Domain]) / wl.cycles[l.Domain]; {
		case part == 0:
			l.Ops = 0
		case math.IsInf(ops, 1):
			l.Ops = ops
		default:
			l.Ops = ops * (part / rate)
		}
	}
}

// spare is how much more CPU time than it was given a workload could have on a node, as
// a part of it: its part of what is idle, by what all were given, within what its
// threads there, its cpuset and its quota allow.
func (w *World) spare(wl *workload, n int, most, all float64) float64 {
	g := &wl.group
	used, given := g.Used[n], w.host.Nodes[n].CPUs-w.idle[n]
	if used <= few || given <= few {
		return 0
	}
	return max(0, min(w.idle[n]/given, g.CPUs[n]/used-1, g.On[n]/used-1, most/all-1))
}

// opsAsked is a second, all its threads together.
func (w *World) opsAsked(wl *workload, dt float64) float64 {
	if !wl.now.closed {
		return float64(wl.now.rate*(1-wl.refused)) + wl.queue/dt
	}
	think := wl.spec.Demand.Think.Seconds()
	if think == 0 {
		return math.Inf(1)
	}
	threads := wl.group.Threads * (1 - wl.now.still/dt) * wl.now.duty
	return threads / (w.mean(wl)/w.c.System.Hz + think)
}

// home is where accesses of its threads on a node go, so many of them to private
// memory: shares that sum to 1.
func (w *World) home(wl *workload, node int, private float64) []float64 {
	at := len(w.shares)
	for range w.places {
		w.shares = append(w.shares, 0)
	}
	home := w.shares[at:len(w.shares):len(w.shares)]
	wl.group.Homes(home, node, private)
	sum := 0.0
	for _, x := range home {
		sum += x
	}
	if sum < 1e-12 { // it holds nothing: what it accesses is next to it
		home[w.host.Zonelist[node][0]] = 1
		return home
	}
	for m := range home {
		home[m] /= sum
	}
	return home
}

// learn keeps the cycles, and says whether the wants came from cycles that are far from
// these: too low, and somebody lacks CPU time, or too high, and others may.
func (w *World) learn(dt float64, res *memsys.Result) (far bool) {
	k := 0
	for i, wl := range w.live {
		done, own, all := 0.0, 0.0, 0.0
		for ; k < len(w.loads) && w.loads[k].Workload == i; k++ {
			if wl.mixed {
				mine, both := w.solver.OwnReads(k, w.loads[k].Work.Regions)
				own += float64(mine * res.Loads[k].Ops)
				all += float64(both * res.Loads[k].Ops)
			}
			now, last := res.Loads[k].Cycles, &wl.cycles[w.loads[k].Domain]
			far = far || w.loads[k].CPUs > few && (now < *last*0.9 || wl.now.closed && now > *last*1.1)
			*last = now
			done += res.Loads[k].Ops
		}
		if all > 0 {
			far = far || math.Abs(own/all-wl.private) > farShare
			wl.private = own / all
		}
		if !far && !wl.now.closed && done < w.opsAsked(wl, dt)*(1-shortage) {
			need, most := w.need(wl, dt)
			far = min(need, most) > float64(w.wants[i]*(1+shortage))
		}
	}
	return far
}

// account puts down what became of the step (doc.go, 4).
func (w *World) account(dt float64, res *memsys.Result) {
	k := 0
	for i, wl := range w.live {
		first := k
		for k < len(w.loads) && w.loads[k].Workload == i {
			k++
		}
		w.accountOf(wl, dt, w.loads[first:k], res.Loads[first:k])
		if w.c.Resctrl {
			w.accountShared(i, wl, dt, w.loads[first:k], res.Loads[first:k])
		}
	}
}

// idleNow is what is left of each node's CPUs, and how many share it.
func (w *World) idleNow() {
	for n := range w.idle {
		w.idle[n], w.sharers[n] = w.host.Nodes[n].CPUs, 0
	}
	for _, wl := range w.live {
		for n, used := range wl.group.Used {
			if w.idle[n] -= used; used > few {
				w.sharers[n]++
			}
		}
	}
	for n := range w.idle {
		w.idle[n] = max(0, w.idle[n])
	}
}

func (w *World) accountOf(wl *workload, dt float64, loads []memsys.Load, results []memsys.LoadResult) {
	q := w.admit(wl, dt)
	done := w.divide(wl, dt, loads, results)
	var c counts
	work := &wl.works[wl.now.phase]
	for k := range loads {
		r, node := &results[k], w.c.System.Domains[loads[k].Domain].Node
		ops := done[k]
		cycles := float64(ops * r.Cycles)
		seconds := cycles / w.c.System.Hz
		c.ops += ops
		c.cycles += cycles
		c.cpu += seconds
		c.stall += float64(ops * r.Stall)
		for m, reads := range r.DRAM {
			if m == node {
				c.local += float64(ops * reads)
			} else {
				c.remote += float64(ops * reads)
			}
		}
		spun := w.spins(wl, &loads[k], seconds, dt)
		c.cycles += float64(spun * w.c.System.Hz)
		c.instructions += float64(spun * w.c.System.Hz)
		c.cpu += spun
		w.busy[node] += seconds + spun
		wl.byCPU[node] += seconds + spun
	}
	c.instructions += float64(c.ops * work.Instructions)
	c.seconds, c.stalled = dt, wl.now.still
	if wl.Bound {
		c.bound = dt
	}
	wl.serve(dt, q, &c)
	wl.win.add(c)
	wl.truth.add(c)
	if wakes := wl.spec.Wakes(); wakes > 0 {
		wl.group.WakeRate = c.ops * wakes / dt / wl.group.Threads
	}
}

// divide says how many operations each load did in the step.
//
//  1. What the memory system says, but no more than were asked for; of those who
//     think, than their cycles now let them.
//  2. If something is missing, threads do it that have CPU time left elsewhere: one
//     queue is for all.
func (w *World) divide(wl *workload, dt float64, loads []memsys.Load, results []memsys.LoadResult) []float64 {
	done, all := w.done[:0], 0.0
	for k := range results {
		done = append(done, float64(results[k].Ops*dt))
		all += done[k]
	}
	w.done = done
	if wl.spec.Work.Barrier > 0 {
		pace := paceOf(loads, results)
		for k := range done {
			done[k] = float64(pace * loads[k].Threads * dt)
		}
		return done
	}
	asked := float64(w.opsAsked(wl, dt) * dt)
	if math.IsInf(asked, 1) || all == 0 {
		return done
	}
	if all >= asked { // 1
		for k := range done {
			done[k] *= asked / all
		}
		return done
	}
	room := 0.0 // 2
	for k := range done {
		room += w.roomOf(&loads[k], &results[k], done[k], dt)
	}
	part := min(1, (asked-all)/max(room, 1e-300))
	for k := range done {
		done[k] += float64(part * w.roomOf(&loads[k], &results[k], done[k], dt))
	}
	return done
}

// roomOf is how many operations more there was CPU time for.
func (w *World) roomOf(l *memsys.Load, r *memsys.LoadResult, done, dt float64) float64 {
	return max(0, float64(l.CPUs*w.c.System.Hz/r.Cycles*dt)-done)
}

func (c *counts) add(o counts) {
	c.seconds += o.seconds
	c.asked += o.asked
	c.ops += o.ops
	c.dropped += o.dropped
	c.cpu += o.cpu
	c.cycles += o.cycles
	c.instructions += o.instructions
	c.stall += o.stall
	c.local += o.local
	c.remote += o.remote
	c.latency += o.latency
	c.stalled += o.stalled
	c.bound += o.bound
}

// growthLimit is up to which multiple of the start's its anonymous memory grows: a
// choice; leaks end in a restart.
const growthLimit = 2

// grow is its memory's growth and churn in so many seconds of running: who stands
// still allocates nothing.
func (w *World) grow(wl *workload, seconds float64) {
	m, hours := &wl.spec.Memory, seconds/3600
	held := pagesOf(m.Private) + pagesOf(m.Shared)
	if m.Growth > 0 && held > 0 {
		more := min(float64(hours*float64(m.Growth)/linux.PageBytes), float64((growthLimit-1)*held)-wl.grown)
		if more > 0 {
			private := float64(more * (pagesOf(m.Private) / held))
			wl.grown += more
			w.touch(wl, linux.Private, private)
			w.touch(wl, linux.Shared, more-private)
		}
	}
	if m.CacheGrowth > 0 {
		w.touch(wl, linux.Cache, hours*float64(m.CacheGrowth)/linux.PageBytes)
	}
	if m.Churn > 0 {
		share := 1 - exact.Exp(-float64(hours*m.Churn)) // steps cut anew give the same
		w.renew(wl, linux.Private, share*sum(wl.group.Memory.Private))
		w.renew(wl, linux.Shared, share*sum(wl.group.Memory.Shared))
	}
}

// touch is linux.Touch. What is refused is owed: a kernel would have killed somebody for
// it. Page cache that finds no room is nobody's loss but time's.
func (w *World) touch(wl *workload, k linux.Kind, pages float64) {
	if pages <= 0 {
		return
	}
	if refused := w.host.Touch(&wl.group, k, pages); k != linux.Cache {
		wl.owed[k] += refused
	}
}

// repay touches what was refused, once more.
func (w *World) repay(wl *workload) {
	for k, pages := range wl.owed {
		wl.owed[k] = 0
		w.touch(wl, linux.Kind(k), pages)
	}
}

// renew frees pages and touches as many.
func (w *World) renew(wl *workload, k linux.Kind, pages float64) {
	if pages > 0 {
		w.host.Release(&wl.group, k, pages)
		w.touch(wl, k, pages)
	}
}

func sum(of []float64) (s float64) {
	for _, x := range of {
		s += x
	}
	return s
}

// balance is NUMA balancing's step: the CPU time that it took of a workload in the
// last step's use of CPU makes its operations dearer in this one.
func (w *World) balance(dt float64) {
	if !w.c.Linux.NUMABalancing {
		return
	}
	for _, wl := range w.live {
		used := sum(wl.group.Used)
		wl.slow = 1
		if cpu := w.host.Balance(dt, &wl.group); used > few {
			wl.slow = 1 + min(mostSlow, cpu/(used*dt))
		}
	}
}

// mostSlow bounds what balancing can take of the time: scanning pauses for those that
// it slows down more (task_numa_work: "3% of walltime" is what it aims at).
const mostSlow = 1
