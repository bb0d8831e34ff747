// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
)

// Pages are linux.Host's, which knows rows: private pages by the node of their threads. It
// treats all pages of a row alike, so each thread's part follows from its row:
//
//  1. Open adds threads' parts up to rows; the host works.
//  2. Close takes from each thread its part of what left a node of the row, and gives it
//     back that amount where the row gained.
//  3. What a row gained beyond that is new: each of its threads touched the same amount.

// keySteps is the resolution of a share: a distribution that changes by less leaves cycles
// as they are. 0.5 % of the accesses is at most 0.5 % of the cycles, usually far less.
const keySteps = 200

// Open is number 1.
func (w *World) Open(x *sim.Workload) {
	wl := w.of[x]
	n := len(w.nodes)
	rows := wl.Group.Memory.Private
	clear(rows)
	for i := range wl.threads {
		t := &wl.threads[i]
		at := w.cpus[t.cpu].node * n
		for k, pages := range t.private {
			rows[at+k] += pages
		}
	}
	wl.Group.Settle()
	w.room.rows = append(w.room.rows[:0], rows...)
}

// Close is numbers 2 and 3.
func (w *World) Close(x *sim.Workload) {
	wl := w.of[x]
	n := len(w.nodes)
	rows, before := wl.Group.Memory.Private, w.room.rows
	for node := range n {
		if wl.Group.On[node] == 0 {
			continue
		}
		same, gained, lost := true, 0.0, 0.0
		for k := node * n; k < node*n+n; k++ {
			same = same && rows[k] == before[k]
			gained += max(0, rows[k]-before[k])
			lost += max(0, before[k]-rows[k])
		}
		if !same {
			w.divide(wl, node, gained, lost)
		}
	}
	w.look(wl)
}

// divide applies the changes of a row to its threads.
func (w *World) divide(wl *workload, node int, gained, lost float64) {
	n := len(w.nodes)
	rows, before := wl.Group.Memory.Private[node*n:node*n+n], w.room.rows[node*n:node*n+n]
	fresh := max(0, gained-lost) / wl.Group.On[node]
	if gained < lost*1.000001 {
		fresh = 0
	}
	for i := range wl.threads {
		t := &wl.threads[i]
		if w.cpus[t.cpu].node != node {
			continue
		}
		taken := fresh
		for k := range rows {
			if rows[k] < before[k] {
				left := t.private[k] * (rows[k] / before[k])
				if gained > 0 {
					taken += t.private[k] - left
				}
				t.private[k] = left
			}
		}
		for k := range rows {
			if more := rows[k] - before[k]; more > 0 {
				t.private[k] += taken * (more / gained)
			}
		}
	}
}

// look computes where a workload's pages are, in steps. Loads of the memory system change
// only when a step changes.
func (w *World) look(wl *workload) {
	m := &wl.Group.Memory
	key := uint64(0)
	all := detmath.Sum(m.Shared) + detmath.Sum(m.Mapped)
	for k := range m.Shared {
		key = more(key, m.Shared[k]+m.Mapped[k], all)
	}
	if key != wl.key {
		wl.key, w.changed = key, true
	}
	for i := range wl.threads {
		t := &wl.threads[i]
		key, all := uint64(0), detmath.Sum(t.private)
		for _, pages := range t.private {
			key = more(key, pages, all)
		}
		if key != t.key {
			t.key, w.changed = key, true
		}
	}
}

func more(key uint64, part, all float64) uint64 {
	step := uint64(0)
	if all > 0 {
		step = uint64(part/all*keySteps + 0.5)
	}
	return (key ^ (step + 1)) * 1099511628211 // FNV's prime
}

// carry updates NUMA balancing's marks after a thread's move to another node: a page whose
// last fault came from the old node has its first fault from the new one.
func (w *World) carry(t *thread, from, to int) {
	if !w.Config.Linux.NUMABalancing || len(t.wl.Group.Scan.Marked) == 0 {
		return
	}
	n := len(w.nodes)
	for k, pages := range t.private {
		if pages <= 0 {
			continue
		}
		all := 0.0
		for i := range t.wl.threads {
			if o := &t.wl.threads[i]; o.cpu >= 0 && w.cpus[o.cpu].node == from {
				all += o.private[k]
			}
		}
		t.wl.Group.Scan.Marked[from*n+k] *= max(0, 1-pages/all)
	}
}

// tick is what happens to pages over some seconds.
func (w *World) tick(seconds float64) {
	w.Host.Reclaim(seconds)
	for _, wl := range w.live {
		w.Grow(wl.Workload, max(0, seconds-wl.Demand.Still))
		w.numaBalance(wl, seconds)
		clear(wl.used)
	}
}
