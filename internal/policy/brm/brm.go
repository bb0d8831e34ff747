// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one period. It returns the next state, the actions, and exactly one reason for
// each of the window's workloads, in their order. The numbers are those of the package
// comment.
func Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []action.Reason) {
	r := newRound(m, cfg, w)
	r.recall(st) // 1
	r.outcomes()
	r.measure() // 2
	r.sum()     // 3
	r.learn()   // 4, 5
	r.judge()   // 6
	r.decide()  // 7, 8
	r.place()   // 9
	return r.next, r.actions, r.explain()
}

// round holds the data of one Step.
type round struct {
	m     machine.Machine
	cfg   Config
	w     window.Window
	nodes []node
	// Indexed by CPU id; nodeOf is none for an offline CPU.
	nodeOf, coreOf []int16
	load, coreLoad []float64 // CPUs' worth of the window's threads
	coreCPUs       []int16   // by core

	next      State
	threads   []seen // parallel to next.Threads
	loads     []load // parallel to the window's workloads
	system    mean   // of all penalties
	drift     float64
	proposals []proposal
	actions   []action.Action
	moves     int // actions that move a thread; others give threads back what they had
	// Threads that explore now, and the most that may.
	explorers, mostExplorers int
	// near lists, for each node, the other nodes from near to far. It is computed on first
	// use.
	near [][]int16
	// Movable threads by node, computed when the first node is full.
	on [][]int32
}

// node is a node with online CPUs.
type node struct {
	id   int
	cpus []int32    // ascending
	set  set.CPUSet // of the same
	busy int        // threads on it that want a CPU of it
}

// seen is a thread in this window.
type seen struct {
	th       *window.Thread
	workload int32
	cpu      int32   // none: unknown
	used     float64 // CPUs' worth; 1 if unknown: it may have used all of it
	fresh    bool    // its penalty was counted in this period
	value    float64 // the scope's penalty
	known    bool    // whether value is known
	settled  bool    // it has stayed long enough to move on
	moved    bool    // it was granted a move
}

// load is a workload in this window.
type load struct {
	first, count      int // of its threads
	hash              uint64
	mean              mean // of its threads' penalties
	candidate, trial  bool
	verdict           verdict
	moved, explored   int
	swapped, full     int
	released, brought int
	pinned            int // threads that another process tied
}

// mean is a sum and the number of its terms.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m mean) get() (float64, bool) { return m.sum / float64(max(1, m.n)), m.n > 0 }

func newRound(m machine.Machine, cfg Config, w window.Window) *round {
	cfg = cfg.atPeriod(w.Length)
	r := &round{m: m, cfg: cfg, w: w, loads: make([]load, len(w.Workloads))}
	r.makeNodes()
	x := float64(float64(max(0, w.Length)) / float64(cfg.HalfLife) * ln2)
	r.drift = 1 - 1/(1+x+float64(x*x*0.5)) // 1 - 2^(-length / half-life), close enough, and the same on every CPU
	return r
}

const ln2 = 0.6931471805599453

// makeNodes orders nodes by their lowest CPU, so renumbered nodes stay in the same order.
func (r *round) makeNodes() {
	most := 0
	for i := range r.m.CPUs {
		most = max(most, r.m.CPUs[i].ID+1)
	}
	for i := range r.w.Nodes {
		if cpus := r.w.Nodes[i].CPUs; !cpus.IsEmpty() {
			n := node{id: r.w.Nodes[i].ID, set: cpus, cpus: make([]int32, 0, cpus.Len())}
			for cpu := range cpus.All() {
				n.cpus = append(n.cpus, int32(cpu))
				most = max(most, cpu+1)
			}
			r.nodes = append(r.nodes, n)
		}
	}
	slices.SortFunc(r.nodes, func(a, b node) int { return cmp.Compare(a.cpus[0], b.cpus[0]) })
	r.nodeOf, r.coreOf = make([]int16, most), make([]int16, most)
	r.load, r.coreLoad = make([]float64, most), make([]float64, len(r.m.Cores))
	r.coreCPUs = make([]int16, len(r.m.Cores))
	for cpu := range r.nodeOf {
		r.nodeOf[cpu], r.coreOf[cpu] = none, none
	}
	for i := range r.m.CPUs {
		if core, ok := r.m.CPUs[i].Core.Get(); ok && core < len(r.m.Cores) {
			r.coreOf[r.m.CPUs[i].ID] = int16(core)
			r.coreCPUs[core]++
		}
	}
	for k := range r.nodes {
		for _, cpu := range r.nodes[k].cpus {
			r.nodeOf[cpu] = int16(k)
		}
	}
}

// measure is number 2: where each thread is, what it used, and what its requests cost.
func (r *round) measure() {
	r.threads = make([]seen, len(r.next.Threads))
	k := 0
	for i := range r.w.Workloads {
		wl := &r.w.Workloads[i]
		r.loads[i].first, r.loads[i].count, r.loads[i].hash = k, len(wl.Threads), hash(wl.ID)
		for j := range wl.Threads {
			r.see(k, i, &wl.Threads[j])
			k++
		}
	}
}

func (r *round) see(k, workload int, th *window.Thread) {
	s, t := &r.threads[k], &r.next.Threads[k]
	if th.Pinned {
		r.loads[workload].pinned++
	}
	*s = seen{th: th, workload: int32(workload), cpu: none, used: th.Used.Or(1)}
	at := none
	if cpu, ok := th.CPU.Get(); ok && cpu >= 0 && cpu < len(r.nodeOf) && r.nodeOf[cpu] != none {
		s.cpu, at = int32(cpu), int(r.nodeOf[cpu])
		r.occupy(cpu, s.used, 1)
	}
	if at != t.Node {
		t.arrive(at)
	} else if t.Here = min(t.Here+1, manyPeriods); t.Here > longestLook+r.cfg.Settle+r.cfg.Samples {
		t.Explores = false // it never left, or has no figures
	}
	r.penalty(s, t, th)
}

// longestLook is the number of extra periods that an explorer may take. Others wait for it
// to finish.
const longestLook = 10

// arrive begins a stay. The period of the arrival belongs to both stays.
func (t *Thread) arrive(at int) {
	t.Node, t.Here, t.Counted, t.Worse, t.Looks = at, 0, 0, 0, t.Explores
	if t.Home == at {
		t.Home = none
	}
}

// occupy adds threads and their use to a CPU, or removes them.
func (r *round) occupy(cpu int, used float64, threads int) {
	r.load[cpu] += float64(float64(threads) * used)
	if core := r.coreOf[cpu]; core != none {
		r.coreLoad[core] += float64(float64(threads) * used)
	}
	if used >= idleCPU {
		r.nodes[r.nodeOf[cpu]].busy += threads
	}
}

// crowded reports that more threads want a CPU of a node than it has.
func (r *round) crowded(k int) bool { return k != none && r.nodes[k].busy > len(r.nodes[k].cpus) }

// penalty keeps the last figure where this period has too few requests: unknown is not
// zero.
func (r *round) penalty(s *seen, t *Thread, th *window.Thread) {
	requests, ok := th.UncoreRequests.Get()
	waits, ok2 := th.UncoreWaits.Get()
	if !ok || !ok2 {
		return
	}
	if cycles, ok := th.Cycles.Get(); ok && cycles > 0 {
		now := min(1, float64(waits)/float64(cycles))
		was, known := t.Stall.Get()
		if known {
			now = was + float64(r.cfg.Smoothing*(now-was))
		}
		t.Stall = unit.Some(now)
	}
	if requests == 0 || requests < r.cfg.MinRequests {
		return
	}
	s.fresh = true
	t.Penalty, t.Seen, t.Known = window.UncorePenalty(float64(waits), float64(requests)).Or(0), r.next.Now, true
}

// sum is number 3. Figures older than Stale are in no sum.
func (r *round) sum() {
	for k := range r.threads {
		t := &r.next.Threads[k]
		if t.Known && r.next.Now-t.Seen <= r.cfg.Stale {
			r.loads[r.threads[k].workload].mean.add(t.Penalty)
			r.system.add(t.Penalty)
		}
	}
	for k := range r.threads {
		s, t := &r.threads[k], &r.next.Threads[k]
		switch r.cfg.Scope {
		case ScopeSystem:
			s.value, s.known = r.system.get()
		case ScopeWorkload:
			s.value, s.known = r.loads[s.workload].mean.get()
		default:
			s.value, s.known = t.Penalty, t.Known
		}
	}
}
