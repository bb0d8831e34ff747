// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/window"
)

// Config describes a world at its start.
type Config struct {
	Machine machine.Machine
	System  memsys.System
	Linux   linux.Settings
	Specs   []Spec // the world keeps them: do not change them afterwards
	Seed    uint64
	Start   time.Time // of the first step; the hour of the day is UTC's
	// Step is the length of a step; a window has several. 0: a second for amounts, 10 ms
	// for single threads.
	Step time.Duration
	// Interleave starts workloads without a memory policy with their memory interleaved
	// over all nodes, as 'numactl --interleave=all' does.
	Interleave bool
	// Resctrl: the host has resctrl and PSI. Windows report what workloads hold of the
	// LLCs, their traffic, and how long they waited for a CPU; and workloads can be
	// isolated. Only for amounts.
	Resctrl bool
}

const (
	defaultStep = time.Second
	// kernelShare is the kernel's own share of a node's memory: page structures (64 bytes
	// of 4096), slabs, tables. It is a choice; more leaves less for workloads.
	kernelShare = 0.02
)

// World is a simulated machine. It is not safe for concurrent use. The exported fields are
// for its Population.
type World struct {
	Config Config
	Host   linux.Host
	Solver memsys.Solver
	Mover  Mover
	Loads  []memsys.Load // of the last step
	Busy   []float64     // CPU seconds by node since the last Window

	population Population

	all  []*Workload // present, to come, or gone but not yet in a Truth; by ID
	live []*Workload // present, parallel to Host.Groups

	clock
	now, since time.Duration // time since the start; of the last Window
	next       time.Duration // when a workload arrives or departs
	seq        uint64
	outcomes   []action.Outcome
	moves      []move // of this window, in order
}

// Population is what differs between worlds: how threads are represented, which CPUs they
// run on, and what they do in a step. There are two: amounts of threads by node (this
// package), and single threads (sim/threadworld).
type Population interface {
	// Begin places the threads of an arriving workload. It holds no memory yet.
	Begin(wl *Workload)
	// End takes the threads of a departing workload off their CPUs.
	End(wl *Workload)
	// Step is one step of time. The world itself has only the clock: the population calls
	// for demand, growth, moves and accounts.
	Step(step time.Duration)
	// Open is called before a workload's pages are used or changed: then
	// Group.Memory.Private has them by the node of their threads. Close is called after
	// changes.
	Open(wl *Workload)
	Close(wl *Workload)
	// MainNode is the index of the node where the main thread is.
	MainNode(wl *Workload) int
	// CPUsChanged moves threads after a change of the workload's cpuset.
	CPUsChanged(wl *Workload)
	// Take carries out a step that only this population knows; false: the world does it.
	Take(wl *Workload, s action.Step) (action.Outcome, bool)
	// Tell adds to a window: anonymous memory by node, and what only this population knows.
	Tell(wl *Workload, x *window.Workload, r Reading)
	// P99 is the 99th percentile of an operation's seconds in a closed loop since the last
	// call; 0: unknown.
	P99(wl *Workload) float64
}

// NewWorld makes a world whose threads are amounts by node. It checks the specs against
// the machine; an error names the workload and the problem.
func NewWorld(c Config) (*World, error) {
	return New(c, defaultStep, func(w *World, _ []*Workload) Population { return newAmounts(w) })
}

// New is NewWorld for any population. populate gets the world and all workloads that will
// arrive, by ID. step is the default.
func New(c Config, step time.Duration, populate func(*World, []*Workload) Population) (*World, error) {
	if c.Step == 0 {
		c.Step = step
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	w := &World{
		Config: c, Busy: make([]float64, len(c.Machine.Nodes)), clock: clock{midnight: sinceMidnight(c.Start)},
		Host: linux.Host{Settings: c.Linux, Zonelist: zonelist(c.Machine)},
	}
	for _, node := range c.Machine.Nodes {
		pages := float64(int64(node.Memory.Or(0)) / linux.PageBytes)
		w.Host.Nodes = append(w.Host.Nodes, linux.Node{CPUs: float64(node.CPUs.Len()), Pages: pages, Other: pages * kernelShare})
	}
	w.Mover = NewMover(c.Machine, &w.Config.System, &w.Host)
	for i := range c.Specs {
		w.all = append(w.all, replicasOf(&c.Specs[i])...)
	}
	slices.SortFunc(w.all, func(a, b *Workload) int { return cmp.Compare(a.ID, b.ID) })
	w.population = populate(w, w.all)
	w.arrive()
	return w, nil
}

// Run lets d of time pass, in steps. A step ends early where a workload arrives or departs.
func (w *World) Run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		step := min(w.Config.Step, end-w.now, w.next-w.now)
		w.population.Step(step)
		if w.now += step; w.now == w.next {
			w.depart()
			w.arrive()
		}
	}
}

// Now is the time since the start.
func (w *World) Now() time.Duration { return w.now }

// arrive starts the workloads whose time has come, in the order of their IDs, and computes
// when the next one arrives or departs.
func (w *World) arrive() {
	w.next = math.MaxInt64
	for _, wl := range w.all {
		if !wl.came && wl.Spec.Arrive <= w.now {
			w.begin(wl)
		}
		for _, at := range []time.Duration{wl.Spec.Arrive, wl.Spec.Depart} {
			if at > w.now {
				w.next = min(w.next, at)
			}
		}
	}
}

// depart ends the workloads whose time has come; waiting requests are dropped.
func (w *World) depart() {
	w.live = slices.DeleteFunc(w.live, func(wl *Workload) bool {
		if wl.Spec.Depart == 0 || wl.Spec.Depart > w.now {
			return false
		}
		w.population.End(wl)
		w.Host.Depart(&wl.Group)
		wl.gone = true
		wl.Got.Dropped += wl.queue
		wl.queue, wl.Owed = 0, Owed{}
		return true
	})
}

// find returns a workload that is present.
func (w *World) find(id string) (*Workload, bool) {
	i, ok := slices.BinarySearchFunc(w.all, id, func(wl *Workload, id string) int { return cmp.Compare(wl.ID, id) })
	if !ok || !w.all[i].Here() {
		return nil, false
	}
	return w.all[i], true
}
