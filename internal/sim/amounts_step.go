// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"time"

	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

const (
	// mostRounds bounds the rounds of giving out CPU and of finding cycles in a step. A
	// second round is taken only where the true request of a workload is known too late.
	mostRounds = 3
	// shortage is the share of the requested operations that may be missing for lack of CPU
	// time before CPU is given out anew. What is missing then waits for the next step.
	shortage = 1e-4
	// farShare is the largest tolerated error of the share of private accesses.
	farShare = 0.02
	// few: fewer threads on a node, or CPUs, than this count as none.
	few = 1e-6
)

// Step is one step of time; the numbers are those of doc.go.
func (w *amounts) Step(step time.Duration) {
	dt := step.Seconds()
	for _, wl := range w.pools {
		w.Ask(wl.Workload, step)                // 1
		w.Grow(wl.Workload, dt-wl.Demand.Still) // 1
	}
	w.Host.Reclaim(dt) // 2
	w.balance(dt)
	w.PlanMoves(dt)
	w.settle(dt)
}

// settle finds the state where CPU time, cycles per operation and operations agree.
//
//  1. Wants are computed from the last known cycles; Linux gives CPU by them (doc.go, 2).
//  2. CPU that is idle then is available to workloads that turn out to need more: the
//     scheduler lets no thread wait beside an idle CPU.
//  3. The memory system computes the cost of operations (3).
//  4. If a workload lacks CPU time and should have requested more, this is repeated,
//     without time passing. Threads at barriers load the memory system at the pace of the
//     slowest.
func (w *amounts) settle(dt float64) {
	w.takeMovers(dt)
	for round, run := 1, dt; ; round, run = round+1, 0 {
		w.want(dt)
		w.Host.Run(run, w.wants) // 1
		w.idleNow()              // 2
		w.load(dt)
		res := w.Solver.Solve(&w.Config.System, w.Loads) // 3
		if !w.learn(dt, res) || round == mostRounds {    // 4
			if w.hold(res) {
				res = w.Solver.Solve(&w.Config.System, w.Loads)
				w.learn(dt, res)
			}
			w.account(dt, res)
			w.MovePages(func(m *Move) (pages, cpu, each float64) { return w.served(m, res, dt) })
			break
		}
	}
	w.giveMovers()
}

// want is the CPU time, in CPUs, that each workload could use.
func (w *amounts) want(dt float64) {
	w.wants = w.wants[:0]
	for _, wl := range w.pools {
		need, most := w.need(wl, dt)
		w.wants = append(w.wants, min(most, need))
	}
}

// need is the CPU time, in CPUs, that a workload seems to need, and the most that it can
// use.
func (w *amounts) need(wl *pool, dt float64) (need, most float64) {
	if most = wl.Group.Threads; wl.Group.Quota > 0 {
		most = min(most, wl.Group.Quota)
	}
	most *= 1 - wl.Demand.Still/dt
	seconds := w.mean(wl) / w.Config.System.Hz // of an operation
	if wl.Demand.Closed {
		most *= wl.Demand.Duty
		return most * seconds / (seconds + wl.Spec.Demand.Think.Seconds()), most
	}
	return w.opsAsked(wl, dt) * seconds, most
}

// mean is the cycles of an operation over all CPUs that it was given last, or else where
// its threads are.
func (w *amounts) mean(wl *pool) float64 {
	cpus, ops := 0.0, 0.0
	for pass := range 2 {
		by := wl.Group.Used
		if pass == 1 {
			by = wl.Group.On
		}
		for d, dom := range w.Config.System.Domains {
			part := by[dom.Node] * wl.share[d]
			cpus += part
			ops += part / wl.cycles[d]
		}
		if ops > 0 {
			return cpus / ops
		}
	}
	return wl.cycles[0]
}

// load lists what runs where, for the memory system: one Load for each workload and domain,
// in the order of live, then those of the movers.
func (w *amounts) load(dt float64) {
	w.Loads, w.shares = w.Loads[:0], w.shares[:0]
	for i, wl := range w.pools {
		w.loadOf(i, wl, dt)
	}
	w.LoadMovers(dt)
}

func (w *amounts) loadOf(i int, wl *pool, dt float64) {
	first, rate, all := len(w.Loads), 0.0, detmath.Sum(wl.Group.Used)
	_, most := w.need(wl, dt)
	for n, p := range w.places {
		on, used := wl.Group.On[n], wl.Group.Used[n]
		if on <= few && used <= few {
			continue
		}
		home, lines := w.home(wl, n, wl.Private), []float64(nil)
		if wl.Spec.Work.Adds > 0 {
			lines = w.home(wl, n, 0)
		}
		could := used * (1 + w.spare(wl, n, most, all))
		for _, d := range p.domains {
			if wl.share[d] == 0 {
				continue
			}
			cpus := could * wl.share[d]
			w.Loads = append(w.Loads, memsys.Load{
				Workload: i, Domain: d, CPUs: cpus, Threads: max(cpus, on*wl.share[d]),
				Work: &wl.Works[wl.Demand.Phase], Home: home, Shared: lines, Slow: wl.Slow,
				Cache: float64(wl.class.Cache), Bandwidth: float64(wl.class.Bandwidth),
			})
			rate += used * wl.share[d] / wl.cycles[d]
		}
	}
	ops := w.opsAsked(wl, dt)
	for k := first; k < len(w.Loads); k++ {
		l := &w.Loads[k]
		node := w.Config.System.Domains[l.Domain].Node
		switch part := wl.Group.Used[node] * wl.share[l.Domain] / wl.cycles[l.Domain]; {
		case part == 0:
			l.Ops = 0
		case math.IsInf(ops, 1):
			l.Ops = ops
		default:
			l.Ops = ops * (part / rate)
		}
	}
}

// spare is how much more CPU time a workload could have on a node, as a share of what it
// got. It is its part of the idle time, by what all workloads got, within what its threads
// there, its cpuset and its quota allow.
func (w *amounts) spare(wl *pool, n int, most, all float64) float64 {
	g := &wl.Group
	used, given := g.Used[n], w.Host.Nodes[n].CPUs-w.idle[n]
	if used <= few || given <= few {
		return 0
	}
	return max(0, min(w.idle[n]/given, g.CPUs[n]/used-1, g.On[n]/used-1, most/all-1))
}

// opsAsked is the operations per second requested from all its threads together.
func (w *amounts) opsAsked(wl *pool, dt float64) float64 {
	if !wl.Demand.Closed {
		return wl.rate*(1-wl.refused) + wl.queue/dt
	}
	think := wl.Spec.Demand.Think.Seconds()
	if think == 0 {
		return math.Inf(1)
	}
	threads := wl.Group.Threads * (1 - wl.Demand.Still/dt) * wl.Demand.Duty
	return threads / (w.mean(wl)/w.Config.System.Hz + think)
}

// home is the distribution over nodes of the accesses of its threads on a node, with the
// given share to private memory. The shares sum to 1.
func (w *amounts) home(wl *pool, node int, private float64) []float64 {
	at := len(w.shares)
	for range w.places {
		w.shares = append(w.shares, 0)
	}
	home := w.shares[at:len(w.shares):len(w.shares)]
	wl.Group.Homes(home, node, private)
	all := detmath.Sum(home)
	if all < 1e-12 { // it holds nothing: its accesses are local
		home[w.Host.Zonelist[node][0]] = 1
		return home
	}
	for m := range home {
		home[m] /= all
	}
	return home
}

// learn stores the cycles, and reports whether the wants came from cycles that are far from
// these. If those were too low, the workload lacks CPU time; if too high, others may lack
// it.
func (w *amounts) learn(dt float64, res *memsys.Result) (far bool) {
	k := 0
	for i, wl := range w.pools {
		done, own, all := 0.0, 0.0, 0.0
		for ; k < len(w.Loads) && w.Loads[k].Workload == i; k++ {
			if wl.Mixed {
				mine, both := w.Solver.OwnReads(k, w.Loads[k].Work.Regions)
				own += mine * res.Loads[k].Ops
				all += both * res.Loads[k].Ops
			}
			now, last := res.Loads[k].Cycles, &wl.cycles[w.Loads[k].Domain]
			far = far || w.Loads[k].CPUs > few && (now < *last*0.9 || wl.Demand.Closed && now > *last*1.1)
			*last = now
			done += res.Loads[k].Ops
		}
		if all > 0 {
			far = far || math.Abs(own/all-wl.Private) > farShare
			wl.Private = own / all
		}
		if !far && !wl.Demand.Closed && done < w.opsAsked(wl, dt)*(1-shortage) {
			need, most := w.need(wl, dt)
			far = min(need, most) > w.wants[i]*(1+shortage)
		}
	}
	return far
}

// account records the results of the step (doc.go, 4).
func (w *amounts) account(dt float64, res *memsys.Result) {
	k := 0
	for i, wl := range w.pools {
		first := k
		for k < len(w.Loads) && w.Loads[k].Workload == i {
			k++
		}
		w.accountOf(wl, dt, w.Loads[first:k], res.Loads[first:k])
		if w.Config.Resctrl {
			w.accountShared(i, wl, dt, w.Loads[first:k], res.Loads[first:k])
		}
	}
}

// idleNow computes what is left of each node's CPUs, and how many share it.
func (w *amounts) idleNow() {
	for n := range w.idle {
		w.idle[n], w.sharers[n] = w.Host.Nodes[n].CPUs, 0
	}
	for _, wl := range w.pools {
		for n, used := range wl.Group.Used {
			if w.idle[n] -= used; used > few {
				w.sharers[n]++
			}
		}
	}
	for n := range w.idle {
		w.idle[n] = max(0, w.idle[n])
	}
}

func (w *amounts) accountOf(wl *pool, dt float64, loads []memsys.Load, results []memsys.LoadResult) {
	if !wl.Demand.Closed {
		wl.Admit(dt, w.mean(wl)/w.Config.System.Hz, w.servers(wl))
	}
	done := w.divide(wl, dt, loads, results)
	c := wl.NewCounts(dt)
	work := &wl.Works[wl.Demand.Phase]
	for k := range loads {
		r, node := &results[k], w.Config.System.Domains[loads[k].Domain].Node
		ops := done[k]
		cycles := ops * r.Cycles
		seconds := cycles / w.Config.System.Hz
		c.Ops += ops
		c.Cycles += cycles
		c.CPU += seconds
		c.Stall += ops * r.Stall
		for m, reads := range r.DRAM {
			if m == node {
				c.Local += ops * reads
			} else {
				c.Remote += ops * reads
			}
		}
		spun := w.spins(wl, &loads[k], seconds, dt)
		c.Cycles += spun * w.Config.System.Hz
		c.Instructions += spun * w.Config.System.Hz
		c.CPU += spun
		w.Busy[node] += seconds + spun
		wl.ByCPU[node] += seconds + spun
	}
	c.Instructions += c.Ops * work.Instructions
	wl.Serve(dt, &c)
	wl.Count(&c)
	if wakes := wl.Spec.Wakes(); wakes > 0 {
		wl.Group.WakeRate = c.Ops * wakes / dt / wl.Group.Threads
	}
}

// servers is the number of CPUs that it could have at once: at most its threads and its
// quota; on each node, its CPUs plus the idle ones, or its fair share of all.
func (w *amounts) servers(wl *pool) float64 {
	g, could := &wl.Group, 0.0
	for n, cpus := range g.CPUs {
		fair := w.Host.Nodes[n].CPUs / max(1, w.sharers[n])
		could += min(cpus, max(g.Used[n]+w.idle[n], fair))
	}
	if g.Quota > 0 {
		could = min(could, g.Quota)
	}
	return max(few, min(could, g.Threads))
}

// divide computes how many operations each load did in the step.
//
//  1. What the memory system says, but no more than were requested. Threads that think do
//     no more than their present cycles allow.
//  2. If some are missing, threads that have CPU time left elsewhere do them: all share
//     one queue.
func (w *amounts) divide(wl *pool, dt float64, loads []memsys.Load, results []memsys.LoadResult) []float64 {
	done, all := w.done[:0], 0.0
	for k := range results {
		done = append(done, results[k].Ops*dt)
		all += done[k]
	}
	w.done = done
	if wl.Spec.Work.Barrier > 0 {
		pace := paceOf(loads, results)
		for k := range done {
			done[k] = pace * loads[k].Threads * dt
		}
		return done
	}
	asked := w.opsAsked(wl, dt) * dt
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
		done[k] += part * w.roomOf(&loads[k], &results[k], done[k], dt)
	}
	return done
}

// roomOf is how many more operations there was CPU time for.
func (w *amounts) roomOf(l *memsys.Load, r *memsys.LoadResult, done, dt float64) float64 {
	return max(0, l.CPUs*w.Config.System.Hz/r.Cycles*dt-done)
}

// balance is NUMA balancing's step. The CPU time that it took from a workload, relative to
// its CPU use in the last step, makes the operations of this step more expensive.
func (w *amounts) balance(dt float64) {
	if !w.Config.Linux.NUMABalancing {
		return
	}
	for _, wl := range w.pools {
		used := detmath.Sum(wl.Group.Used)
		wl.Slow = 1
		if cpu := w.Host.Balance(dt, &wl.Group); used > few {
			wl.Slow = 1 + min(mostSlow, cpu/(used*dt))
		}
	}
}

// mostSlow bounds the share of time that balancing can take: scanning pauses for workloads
// that it slows down more (task_numa_work aims at "3% of walltime").
const mostSlow = 1
