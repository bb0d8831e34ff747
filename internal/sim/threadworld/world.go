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
	// defaultStep is Rao's period: what is shorter than a few time slices of the scheduler
	// cannot be told apart from shares of a CPU.
	defaultStep = 10 * time.Millisecond
	// coarse makes cycles right to 1e-4.
	coarse = 100
	// tick is how often pages come, go and move: they do not notice a single step.
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
	index  []int          // of a CPU by its id; -1: it is not online
	random detmath.Random // of load balancing

	of   map[*sim.Workload]*workload
	live []*workload // that are present, parallel to Host.Groups
	ids  []*thread   // by ID - 1

	ticked   time.Duration // the last tick
	stale    bool          // CPU time must be given out anew
	changed  bool          // loads of the memory system have changed
	tallied  bool          // LLCs were counted with threads, CPUs and wants as they are
	swaps    float64       // the most that a node has
	swapRate float64
	swapAt   time.Duration // when two threads change places, if swapDue
	swapDue  bool
	groups   []group
	result   *memsys.Result
	planned  float64 // pages a second that moves ask for in this step
	traffic  float64 // and those that were solved for
	room     scratch
}

// scratch is room that is kept between calls.
type scratch struct {
	rows        []float64 // private pages by the node of their thread and theirs, before
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
//  1. What is asked of each workload (sim.World.Ask).
//  2. Every tick: page cache makes room, memory grows, NUMA balancing moves pages and
//     threads.
//  3. Threads that wake up, and CPUs that have none, are given others (wakes.go,
//     balances.go).
//  4. Where that changed anything: each CPU's time among its threads (shares.go), what
//     their operations cost then (loads.go), and the time once more at that cost: else
//     requests would wait for a step beside CPUs that are idle. Otherwise nothing changes.
//  5. What each thread did (accounts.go), pages moved as memory served (moves.go).
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
