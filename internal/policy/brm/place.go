// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"math"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/window"
)

// idleCPU is the use, in CPUs' worth, below which a CPU counts as idle: the kernel's own
// threads use that much. With a higher limit, threads that sleep now and then lose their
// CPU.
const idleCPU = 0.1

// place is number 9: proposals are granted in the order drawn.
func (r *round) place() {
	for i := range r.proposals {
		wi := &r.proposals[i]
		if r.threads[wi.thread].moved {
			continue // it swapped with another thread
		}
		if r.left() < 1 {
			return
		}
		r.grant(wi)
	}
}

// left is how many threads may still be moved in this period.
func (r *round) left() int {
	if r.cfg.MaxMoves == 0 {
		return math.MaxInt
	}
	return r.cfg.MaxMoves - r.moves
}

// grant moves a thread to the node proposed for it: to a CPU that is no busier than its
// own, else as WhenFull says.
func (r *round) grant(wi *proposal) {
	s := &r.threads[wi.thread]
	l, wl := &r.loads[s.workload], &r.w.Workloads[s.workload]
	cpu, used := r.leastLoaded(wi.node, mayUse(wl, s.th), &wi.draw)
	if cpu == none {
		return
	}
	left := r.load[s.cpu] - s.used // of other threads, on its CPU
	if used < idleCPU || used <= left+idleCPU {
		r.move(wi.thread, cpu, wi.why)
		return
	}
	full := r.cfg.WhenFull
	if full == FullSwap && r.crowded(int(r.nodeOf[s.cpu])) {
		full = FullGo // its CPU does not stay idle: a thread that waits here takes it
	}
	if full == FullSwapOnly || full == FullSwap && wi.why == byBias {
		if other := r.partner(wi); other != none && r.cfg.MaxMoves != 1 {
			r.swap(wi, other)
			return
		}
	}
	if full == FullGo || full == FullSwap && (wi.why != byBias || r.givesWay(wi)) {
		r.move(wi.thread, cpu, wi.why)
		return
	}
	l.full++
}

// swap exchanges a thread with another. If only one more may be moved in this period, it
// waits for a later period.
func (r *round) swap(wi *proposal, other int) {
	if r.left() < 2 {
		return
	}
	there, here := int(r.threads[other].cpu), int(r.threads[wi.thread].cpu)
	r.move(wi.thread, there, wi.why)
	r.move(other, here, forAnother)
}

// leastLoaded is the CPU of a node, among those that may be used, with the least load of
// the window's threads. Ties go to the core whose other CPUs have the least load, then to a
// draw. Loads below idleCPU count as equal.
func (r *round) leastLoaded(k int, may set.CPUSet, d *draw) (cpu int, used float64) {
	cpu = none
	var beside float64
	n := uint64(0)
	for _, c := range r.nodes[k].cpus {
		if !may.Has(int(c)) {
			continue
		}
		u, b := r.loadOf(int(c))
		switch {
		case cpu == none || u < used || u == used && b < beside:
			cpu, used, beside, n = int(c), u, b, 1
		case u == used && b == beside:
			if n++; d.next()%n == 0 {
				cpu = int(c)
			}
		}
	}
	return cpu, used
}

// loadOf is the load of a CPU, and the mean load of its core's other CPUs.
func (r *round) loadOf(cpu int) (used, beside float64) {
	used = r.load[cpu]
	if core := r.coreOf[cpu]; core != none && r.coreCPUs[core] > 1 {
		beside = quiet((r.coreLoad[core] - used) / float64(r.coreCPUs[core]-1))
	}
	return quiet(used), beside
}

func quiet(load float64) float64 {
	if load < idleCPU {
		return 0
	}
	return load
}

// move puts a thread on a CPU. Step acts in no other way.
func (r *round) move(k, cpu int, why reason) {
	s, t := &r.threads[k], &r.next.Threads[k]
	l, wl := &r.loads[s.workload], &r.w.Workloads[s.workload]
	to := int(r.nodeOf[cpu])
	r.occupy(int(s.cpu), s.used, -1)
	r.occupy(cpu, s.used, 1)
	s.moved = true
	r.moves++
	cpus := set.FromCPUs(cpu)
	hold := r.cfg.Hold && !r.crowded(to)
	if hold { // the kernel may balance within the node
		cpus = r.nodeCPUs(to, mayUse(wl, s.th))
	}
	r.actions = append(r.actions, action.Action{Kind: action.Pin, Workload: wl.ID, Thread: t.ID, CPUs: cpus, Release: !hold})
	t.Prob = r.cfg.ResetProb
	switch v := &r.next.visits(k)[to]; why {
	case toTry:
		if t.Home == none {
			t.Home = t.Node
		}
		fallthrough
	case toExplore:
		t.Explores, t.Next = true, r.next.Now+r.cfg.ExploreEvery
		v.Tries = min(v.Tries+1, mostDoublings+1)
		l.explored++
	case goesHome:
		l.brought++
	case forAnother:
		l.swapped++
	default:
		l.moved++
	}
}

func (r *round) nodeCPUs(k int, may set.CPUSet) set.CPUSet {
	ids := make([]int, 0, len(r.nodes[k].cpus))
	for _, cpu := range r.nodes[k].cpus {
		if may.Has(int(cpu)) {
			ids = append(ids, int(cpu))
		}
	}
	return set.FromCPUs(ids...)
}

// release gives a thread back what it had.
func (r *round) release(l *load, wl *window.Workload, k int) {
	t := &r.next.Threads[k]
	if r.next.Now < t.Until {
		return
	}
	l.released++
	r.actions = append(r.actions, action.Action{Kind: action.Pin, Workload: wl.ID, Thread: t.ID})
}

// partner finds a thread to swap with where the node is full (our choice; the paper goes
// there all the same): of the candidates there that lose less by it than the thread gains,
// the one that loses least.
func (r *round) partner(wi *proposal) int {
	from := r.next.Threads[wi.thread].Node
	gain := r.factor(wi.thread, from, wi.node)
	best, least := none, 0.0
	mover := &r.threads[wi.thread]
	may := mayUse(&r.w.Workloads[mover.workload], mover.th)
	for _, k := range r.movableOn(wi.node) {
		loss := r.factor(int(k), wi.node, from)
		if best != none && loss >= least || r.threads[k].moved || !r.pays(gain, loss) {
			continue
		}
		if may.Has(int(r.threads[k].cpu)) && r.mayUseCPU(int(k), int(mover.cpu)) {
			best, least = int(k), loss
		}
	}
	return best
}

// pays reports that a thread which would take gain times as long gains more by a swap than a
// thread which would take loss times as long loses by it. Two equal threads must not swap
// because of noise.
func (r *round) pays(gain, loss float64) bool {
	return gain == 1 && loss <= 1 || float64(gain*loss) <= 1-r.worth()
}

// givesWay reports that some thread on the full node would lose less than the arriving
// thread gains. There is none to swap with, but the kernel can make room. Where all have as
// much to lose, the kernel would only push one of them away; it would come back, and so on.
func (r *round) givesWay(wi *proposal) bool {
	from := r.next.Threads[wi.thread].Node
	gain := r.factor(wi.thread, from, wi.node)
	for k := range r.threads {
		s := &r.threads[k]
		if l := &r.loads[s.workload]; r.next.Threads[k].Node != wi.node || s.th.Pinned || s.moved || s.used < idleCPU {
			continue
		} else if !l.candidate && !l.trial || r.pays(gain, r.factor(k, wi.node, from)) {
			return true
		}
	}
	return false
}

// factor is how much longer a thread takes on another node: its time without waits, plus
// its requests times their cost there. An unknown cost changes nothing.
func (r *round) factor(k, from, to int) float64 {
	visits := r.next.visits(k)
	a, b := &visits[from], &visits[to]
	if !a.Known || !b.Known || a.Own <= 0 {
		return 1
	}
	stall := r.next.Threads[k].Stall.Or(1)
	return 1 + float64(stall*(float64(b.Own)/float64(a.Own)-1))
}

func (r *round) mayUseCPU(k, cpu int) bool {
	s := &r.threads[k]
	return mayUse(&r.w.Workloads[s.workload], s.th).Has(cpu)
}

// movableOn lists the candidates on a node that have been there long enough or are
// insensitive, and threads on trial.
func (r *round) movableOn(node int) []int32 {
	if r.on == nil {
		r.on = make([][]int32, len(r.nodes))
		for k := range r.threads {
			s := &r.threads[k]
			l, t := &r.loads[s.workload], &r.next.Threads[k]
			if t.Node != none && (s.settled || r.idle(t)) && (l.candidate || l.trial) && r.movable(k) {
				r.on[t.Node] = append(r.on[t.Node], int32(k))
			}
		}
	}
	return r.on[node]
}
