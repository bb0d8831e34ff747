// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"cmp"
	"math"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/sim"
	"homenode/internal/sim/exact"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/mover"
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

// World is a simulated machine with single threads. It is not safe for concurrent use.
type World struct {
	c      sim.Config
	nodes  []node // parallel to the machine's
	cpus   []cpu
	cores  []core
	llcs   []llc // parallel to the system's domains
	levels []level
	index  []int // of a CPU by its id; -1: it is not online
	host   linux.Host
	solver memsys.Solver
	random exact.Random // of load balancing

	all  []*workload // that are or will be there, and those gone that Truth has not told of; by ID
	live []*workload // that are there, parallel to host.Groups
	ids  []*thread   // by ID - 1

	now, since time.Duration // from the start; of the last Window
	next       time.Duration // when somebody comes or goes
	ticked     time.Duration // the last tick
	seq        uint64
	outcomes   []action.Outcome
	moves      []move

	stale    bool    // who gets how much of which CPU must be found anew
	changed  bool    // loads of the memory system have changed
	tallied  bool    // threads, CPUs and wants are as LLCs were counted
	swaps    float64 // the most that a node has
	swapRate float64
	swapAt   time.Duration // when two threads change places, if swapDue
	swapDue  bool
	groups   []group
	loads    []memsys.Load
	result   *memsys.Result
	traffic  float64 // of movers, as solved

	busy  []float64 // CPU seconds by node since the last Window
	mover mover.Mover
	room  scratch
}

// scratch is room that is kept between calls.
type scratch struct {
	rows        []float64 // private pages by the node of their thread and theirs, before
	shares      []float64 // of group.home
	count       []float64 // threads by node
	some, order []int
	mask        []uint64
}

// NewWorld checks the specs against the machine. c.Step is 10 ms if it is 0.
func NewWorld(c sim.Config) (*World, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Step == 0 {
		c.Step = defaultStep
	}
	w := &World{c: c, stale: true}
	w.solver.Keep, w.swapRate = true, swapRate
	w.random = exact.NewRandom(c.Seed, "threads", "balance")
	w.layOut()
	w.host = linux.Host{Settings: c.Linux, Zonelist: sim.Zonelist(c.Machine)}
	for i, n := range c.Machine.Nodes {
		pages := float64(int64(n.Memory.Or(0)) / linux.PageBytes)
		w.host.Nodes = append(w.host.Nodes, linux.Node{
			CPUs: float64(len(w.nodes[i].cpus)), Pages: pages, Other: float64(pages * sim.KernelShare),
		})
	}
	w.mover = mover.New(c.Machine, &w.c.System, &w.host)
	for i := range c.Specs {
		w.prepare(&c.Specs[i])
	}
	slices.SortFunc(w.all, func(a, b *workload) int { return cmp.Compare(a.ID, b.ID) })
	for _, wl := range w.all {
		w.number(wl)
	}
	w.arrive()
	return w, nil
}

// Run lets time pass, in steps, until d later. A step ends early where somebody comes
// or goes.
func (w *World) Run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		step := min(w.c.Step, end-w.now, w.next-w.now)
		w.step(step)
		if w.now += step; w.now == w.next {
			w.depart()
			w.arrive()
		}
	}
}

// Now is the time that has passed since the start.
func (w *World) Now() time.Duration { return w.now }

// arrive lets those come whose time it is, in the order of their IDs, and finds when
// somebody comes or goes next.
func (w *World) arrive() {
	w.next = math.MaxInt64
	for _, wl := range w.all {
		if !wl.came && wl.spec.Arrive <= w.now {
			w.begin(wl)
		}
		for _, at := range []time.Duration{wl.spec.Arrive, wl.spec.Depart} {
			if at > w.now {
				w.next = min(w.next, at)
			}
		}
	}
}

// depart lets those go whose time it is; what waited is dropped.
func (w *World) depart() {
	w.live = slices.DeleteFunc(w.live, func(wl *workload) bool {
		if wl.spec.Depart == 0 || wl.spec.Depart > w.now {
			return false
		}
		for i := range wl.threads {
			w.leave(&wl.threads[i])
		}
		w.host.Depart(&wl.group)
		wl.gone = true
		wl.truth.dropped += wl.requests.Waiting()
		wl.requests.Drop()
		wl.owed = sim.Owed{}
		w.stale, w.changed = true, true
		return true
	})
}

// find is a workload that is there.
func (w *World) find(id string) (*workload, bool) {
	i, ok := slices.BinarySearchFunc(w.all, id, func(wl *workload, id string) int { return cmp.Compare(wl.ID, id) })
	if !ok || !w.all[i].here() {
		return nil, false
	}
	return w.all[i], true
}

// step is one step of time:
//
//  1. What is asked of whom (sim.Requests).
//  2. Every tick: page cache makes room, memory grows, NUMA balancing moves pages and
//     threads.
//  3. Threads that wake up, and CPUs that have none, are given others (wakes.go,
//     balances.go).
//  4. Where that changed anything: each CPU's time among its threads (shares.go), what
//     their operations cost then (loads.go), and the time once more at that cost: else
//     requests would wait for a step beside CPUs that are idle. Else all is as it was.
//  5. What each thread did (accounts.go), pages moved as memory served (moves.go).
func (w *World) step(step time.Duration) {
	dt := step.Seconds()
	for _, wl := range w.live {
		w.ask(wl, step) // 1
	}
	if w.now-w.ticked >= tick {
		w.tick((w.now - w.ticked).Seconds()) // 2
		w.ticked = w.now
	}
	w.wake(dt) // 3
	w.balance(step)
	w.planMoves(dt)
	w.takeMovers(dt)
	if w.stale { // 4
		w.share(dt)
	}
	if w.changed {
		w.solve(dt)
		w.share(dt)
	}
	w.account(dt) // 5
	w.movePages(dt)
}

// ask is number 1 of step.
func (w *World) ask(wl *workload, step time.Duration) {
	before := wl.demand
	wl.demand = wl.requests.Ask(w.now, step)
	if wl.demand != before || !wl.demand.Closed {
		w.stale = true
	}
	if wl.demand.Phase != before.Phase {
		w.changed = true
	}
}
