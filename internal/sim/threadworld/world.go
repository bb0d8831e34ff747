// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

const (
	// defaultStep is Rao's period: less than a few time slices of the scheduler cannot be
	// distinguished from shares of a CPU.
	defaultStep = 10 * time.Millisecond
	// coarse makes cycles correct to 1e-4.
	coarse = 100
	// tick is the interval at which pages come, go and move: a single step makes no
	// difference to them.
	tick = 100 * time.Millisecond
)

// World is a simulated machine with single threads, and the population of its sim.World.
// It is not safe for concurrent use.
type World struct {
	*sim.World
	nodes  []node // parallel to the machine's
	cpus   []cpu
	cores  []core
	llcs   []llc // parallel to the system's domains
	levels []level
	index  []int          // index of a CPU by its id; -1: it is not online
	random detmath.Random // for load balancing

	of   map[*sim.Workload]*workload
	live []*workload // present workloads, parallel to Host.Groups
	ids  []*thread   // by ID - 1

	ticked   time.Duration // the last tick
	stale    bool          // CPU time must be given out anew
	changed  bool          // loads of the memory system have changed
	tallied  bool          // LLCs were counted with the present threads, CPUs and wants
	swaps    float64       // the highest rate of any node
	swapRate float64
	swapAt   time.Duration // when two threads swap, if swapDue
	swapDue  bool
	groups   []group
	result   *memsys.Result
	planned  float64 // pages per second that moves request in this step
	traffic  float64 // pages per second when last solved
	room     scratch
}

// scratch is memory that is kept between calls.
type scratch struct {
	rows        []float64 // private pages before the step, by the node of their thread and their own node
	shares      []float64 // of group.home
	some, order []int
	mask        []uint64
}

// NewWorld checks the specs against the machine.
func NewWorld(c sim.Config) (*World, error) {
	w := &World{stale: true, swapRate: swapRate, of: map[*sim.Workload]*workload{}}
	_, err := sim.New(c, defaultStep, func(base *sim.World, all []*sim.Workload) sim.Population {
		w.World = base
		w.Solver.Keep, w.Solver.Coarse = true, coarse
		w.random = detmath.NewRandom(c.Seed, "threads", "balance")
		w.layOut()
		for _, wl := range all {
			w.prepare(wl)
		}
		return w
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Step is one step of time:
//
//  1. The demand on each workload (sim.World.Ask).
//  2. Every tick: page cache makes room, memory grows, NUMA balancing moves pages and
//     threads.
//  3. Threads that wake up get a CPU, and CPUs without threads get threads (wakes.go,
//     balances.go).
//  4. Where that changed anything: each CPU's time is shared among its threads
//     (shares.go), then the cost of their operations is computed (loads.go), then the time is
//     shared again at that cost; otherwise requests would wait for a step beside idle CPUs.
//     Where nothing changed, all stays.
//  5. What each thread did (accounts.go), and pages moved as memory served (moves.go).
func (w *World) Step(step time.Duration) {
	dt := step.Seconds()
	for _, wl := range w.live {
		w.ask(wl, step) // 1
	}
	if w.Now()-w.ticked >= tick {
		w.tick((w.Now() - w.ticked).Seconds()) // 2
		w.ticked = w.Now()
	}
	w.wake(dt) // 3
	w.balance(step)
	if w.planned = w.PlanMoves(dt); math.Abs(w.planned-w.traffic) > 0.01*max(w.planned, w.traffic) {
		w.changed = true
	}
	w.takeMovers(dt)
	if w.stale { // 4
		w.share(dt)
	}
	if w.changed {
		w.solve(dt)
		w.share(dt)
	}
	w.account(dt) // 5
	w.MovePages(func(m *sim.Move) (pages, cpu, each float64) { return w.served(m, dt) })
}

// ask is number 1 of Step.
func (w *World) ask(wl *workload, step time.Duration) {
	before := wl.Demand
	w.Ask(wl.Workload, step)
	if wl.Demand != before || !wl.Demand.Closed {
		w.stale = true
	}
	if wl.Demand.Phase != before.Phase {
		w.changed = true
	}
}
