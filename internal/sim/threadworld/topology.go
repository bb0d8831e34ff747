// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"time"

	"homenode/internal/set"
)

// node, llc and core are what CPUs share; a cpu is a logical CPU that is online. Indexes in
// them are those of World.
type node struct {
	id     int
	set    set.CPUSet
	cpus   []int
	llcs   []int
	levels []int   // of World.levels, from the nearest nodes on
	swaps  float64 // swaps.go
}

type llc struct {
	node int
	cpus []int
	busy time.Duration // when its busy CPUs balance, and its cores
	core time.Duration
	crowd
}

// crowd is the mean load of some CPUs.
type crowd struct {
	size, load     float64 // CPUs; threads that run or wait
	idle           float64 // CPUs
	vary, varyIdle float64 // variance of load and of idle, from one moment to the next
	waits          float64 // CPUs, weighted by the probability that a thread of them waits
	queue          int     // CPUs with more than they can do
}

type core struct{ cpus []int }

type cpu struct {
	id, node, llc, core int
	threads             []*thread
	load                float64 // sum of what its threads want
	room                float64 // share of its time that movers leave
	spare               float64 // share of its time that its threads leave
	waits               float64 // probability that one of its threads waits for another
}

// layOut numbers the CPUs node by node.
func (w *World) layOut() {
	domains := w.Config.Domains()
	n := len(w.Config.Machine.Nodes)
	w.nodes, w.llcs = make([]node, n), make([]llc, len(w.Config.System.Domains))
	for d, dom := range w.Config.System.Domains {
		w.llcs[d].node = dom.Node
		w.nodes[dom.Node].llcs = append(w.nodes[dom.Node].llcs, d)
	}
	cores := map[int]int{}
	for i, m := range w.Config.Machine.Nodes {
		w.nodes[i].id, w.nodes[i].set = m.ID, m.CPUs
		for id := range m.CPUs.All() {
			at := len(w.cpus)
			c := cpu{id: id, node: i, room: 1, llc: domains[id], core: w.coreOf(id, cores)}
			w.cpus = append(w.cpus, c)
			w.nodes[i].cpus = append(w.nodes[i].cpus, at)
			w.llcs[c.llc].cpus = append(w.llcs[c.llc].cpus, at)
			w.cores[c.core].cpus = append(w.cores[c.core].cpus, at)
			for len(w.index) <= id {
				w.index = append(w.index, -1)
			}
			w.index[id] = at
		}
	}
	w.room.mask = make([]uint64, w.words())
	w.layDomains()
}

// idle is the probability that a CPU is idle at a given moment: what its threads and movers
// leave of its time. Wake-ups, forks, load balancing and NUMA balancing all use this
// definition of idle.
func (c *cpu) idle() float64 { return max(0, c.room-c.load) }

// coreOf is the index of a CPU's core; a CPU of unknown core has a core of its own.
func (w *World) coreOf(id int, cores map[int]int) int {
	for _, c := range w.Config.Machine.CPUs {
		k, ok := c.Core.Get()
		if c.ID != id || !ok {
			continue
		}
		if at, ok := cores[k]; ok {
			return at
		}
		cores[k] = len(w.cores)
	}
	w.cores = append(w.cores, core{})
	return len(w.cores) - 1
}

func (w *World) words() int { return (len(w.cpus) + 63) / 64 }

// maskOf is a set as bits of World.cpus.
func (w *World) maskOf(cpus set.CPUSet) []uint64 {
	mask := make([]uint64, w.words())
	for id := range cpus.All() {
		if id < len(w.index) && w.index[id] >= 0 {
			mask[w.index[id]/64] |= 1 << (w.index[id] % 64)
		}
	}
	return mask
}

func has(mask []uint64, cpu int) bool { return mask[cpu/64]>>(cpu%64)&1 != 0 }

// coreLoad is what all threads of a CPU's core want.
func (w *World) coreLoad(c int) (sum float64) {
	for _, k := range w.cores[w.cpus[c].core].cpus {
		sum += w.cpus[k].load
	}
	return sum
}
