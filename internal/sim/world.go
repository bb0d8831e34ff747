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
	"homenode/internal/sim/mover"
)

// Config is a world at its start.
type Config struct {
	Machine machine.Machine
	System  memsys.System
	Linux   linux.Settings
	Specs   []Spec // kept: not to be changed any more
	Seed    uint64
	Start   time.Time     // of the first step; the hour of the day is UTC's
	Step    time.Duration // of time; a window is some steps. 0: a second
	// Interleave starts workloads without a memory policy with their memory
	// interleaved over all nodes, as 'numactl --interleave=all' does.
	Interleave bool
	// Resctrl: the host has resctrl and PSI. Windows tell what workloads hold of the LLCs,
	// their traffic, and how long they waited for a CPU; and they can be isolated.
	Resctrl bool
}

const (
	defaultStep = time.Second
	// kernelShare of a node's memory is the kernel's own: page structures (64 bytes of
	// 4096), slabs, tables. A choice; more leaves less for workloads.
	kernelShare = 0.02
)

// World is a simulated machine. It is not safe for concurrent use.
type World struct {
	c      Config
	places []place // parallel to the machine's nodes
	host   linux.Host
	solver memsys.Solver

	all  []*workload // that are or will be there, and those gone that Truth has not told of; by ID
	live []*workload // that are there, parallel to host.Groups

	clock
	now, since time.Duration // from the start; of the last Window
	next       time.Duration // when somebody comes or goes
	seq        uint64
	outcomes   []action.Outcome
	moves      []move // of this window, in order

	busy  []float64 // CPU seconds by node since the last Window
	mover mover.Mover

	// Room of a step, kept between steps.
	wants, idle, done []float64
	sharers           []float64 // workloads that use a node's CPUs
	loads             []memsys.Load
	shares            []float64 // of Load.Home
}

// NewWorld checks the specs against the machine. An error names the workload and
// what cannot be.
func NewWorld(c Config) (*World, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Step == 0 {
		c.Step = defaultStep
	}
	n := len(c.Machine.Nodes)
	w := &World{
		c: c, places: placesOf(c),
		clock: clock{midnight: sinceMidnight(c.Start)},
		busy:  make([]float64, n), idle: make([]float64, n), sharers: make([]float64, n),
	}
	w.host = linux.Host{Settings: c.Linux, Zonelist: zonelist(c.Machine)}
	for i, node := range c.Machine.Nodes {
		pages := float64(int64(node.Memory.Or(0)) / linux.PageBytes)
		w.host.Nodes = append(w.host.Nodes, linux.Node{CPUs: w.places[i].count, Pages: pages, Other: float64(pages * kernelShare)})
	}
	w.mover = mover.New(c.Machine, &w.c.System, &w.host)
	for i := range c.Specs {
		w.prepare(&c.Specs[i])
	}
	slices.SortFunc(w.all, func(a, b *workload) int { return cmp.Compare(a.ID, b.ID) })
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
		w.host.Depart(&wl.group)
		wl.gone = true
		wl.truth.dropped += wl.queue
		wl.queue, wl.owed = 0, Owed{}
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
