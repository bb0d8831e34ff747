// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"homenode/internal/sim"
	"homenode/internal/sim/exact"
	"homenode/internal/sim/linux"
)

// Pages are linux.Host's, which knows rows: private pages by the node where their
// threads are. What it does to a row it does to all of the row's pages alike, so that
// each thread's part of it follows:
//
//  1. open adds threads up to rows; the host works.
//  2. close takes from each thread what part of its row left a node, and gives it what
//     it lost where the row gained.
//  3. What a row gained beyond that is new: each of its threads touched as much.

// keySteps of a share are told apart: a distribution that moves by less leaves cycles as
// they are. 0.5 % of the accesses is at most 0.5 % of the cycles, mostly far less.
const keySteps = 200

// open is number 1.
func (w *World) open(wl *workload) {
	n := len(w.nodes)
	rows := wl.group.Memory.Private
	clear(rows)
	for i := range wl.threads {
		t := &wl.threads[i]
		at := w.cpus[t.cpu].node * n
		for k, pages := range t.private {
			rows[at+k] += pages
		}
	}
	wl.group.Settle()
	w.room.rows = append(w.room.rows[:0], rows...)
}

// close is numbers 2 and 3.
func (w *World) close(wl *workload) {
	n := len(w.nodes)
	rows, before := wl.group.Memory.Private, w.room.rows
	for node := range n {
		if wl.group.On[node] == 0 {
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

// divide is what became of a row, by thread.
func (w *World) divide(wl *workload, node int, gained, lost float64) {
	n := len(w.nodes)
	rows, before := wl.group.Memory.Private[node*n:node*n+n], w.room.rows[node*n:node*n+n]
	fresh := max(0, gained-lost) / wl.group.On[node]
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
				left := float64(t.private[k] * (rows[k] / before[k]))
				if gained > 0 {
					taken += t.private[k] - left
				}
				t.private[k] = left
			}
		}
		for k := range rows {
			if more := rows[k] - before[k]; more > 0 {
				t.private[k] += float64(taken * (more / gained))
			}
		}
	}
}

// look finds where a workload's pages are, in steps: loads of the memory system change
// where a step is taken.
func (w *World) look(wl *workload) {
	m := &wl.group.Memory
	key := uint64(0)
	all := sum(m.Shared) + sum(m.Mapped)
	for k := range m.Shared {
		key = more(key, m.Shared[k]+m.Mapped[k], all)
	}
	if key != wl.key {
		wl.key, w.changed = key, true
	}
	for i := range wl.threads {
		t := &wl.threads[i]
		key, all := uint64(0), sum(t.private)
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
		step = uint64(float64(part/all*keySteps) + 0.5)
	}
	return (key ^ (step + 1)) * 1099511628211 // FNV's prime
}

func sum(of []float64) (s float64) {
	for _, x := range of {
		s += x
	}
	return s
}

// carry is what a thread's move to another node does to NUMA balancing's marks: a page
// that was last faulted for from the old node has its first fault from the new one.
func (w *World) carry(t *thread, from, to int) {
	if !w.c.Linux.NUMABalancing || len(t.wl.group.Scan.Marked) == 0 {
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
		t.wl.group.Scan.Marked[from*n+k] *= max(0, 1-pages/all)
	}
}

// fill is its first touch of all that it has.
//
//  1. Private memory is touched by its thread where it starts, page cache by who reads.
//  2. Shared memory by the main thread, unless the workers touch it.
//  3. Or all of it somewhere else, if the spec says so. That is no binding: what has no
//     room there goes along the zonelist, as from threads that ran there.
func (w *World) fill(wl *workload) {
	m, g := wl.spec.Memory, &wl.group
	policy := g.Policy
	if touch := wl.spec.Start.Touch; !touch.IsEmpty() && policy.Mode == linux.Local { // 3
		g.Policy = linux.Policy{Mode: linux.Interleave, Nodes: w.c.Indexes(touch)}
	}
	w.open(wl)
	w.touch(wl, linux.Private, sim.PagesOf(m.Private)) // 1
	w.close(wl)
	on := g.On
	if m.Toucher != "workers" { // 2
		g.On = make([]float64, len(w.nodes))
		g.On[w.cpus[wl.threads[0].cpu].node] = g.Threads
	}
	w.touch(wl, linux.Shared, sim.PagesOf(m.Shared))
	w.touch(wl, linux.Mapped, sim.PagesOf(m.Files))
	g.On = on
	w.touch(wl, linux.Cache, sim.PagesOf(m.Cache))
	g.Policy = policy
	w.look(wl)
}

// touch is linux.Touch of an open workload. What is refused is owed; page cache that
// finds no room is nobody's loss but time's.
func (w *World) touch(wl *workload, k linux.Kind, pages float64) {
	if pages <= 0 {
		return
	}
	if refused := w.host.Touch(&wl.group, k, pages); k != linux.Cache {
		wl.owed[k] += refused
	}
}

// tick is what happens to pages in so many seconds.
func (w *World) tick(seconds float64) {
	w.host.Reclaim(seconds)
	for _, wl := range w.live {
		if m := &wl.spec.Memory; m.Growth > 0 || m.CacheGrowth > 0 || m.Churn > 0 || wl.owed != (sim.Owed{}) {
			w.open(wl)
			w.repay(wl)
			w.grow(wl, max(0, seconds-wl.demand.Still))
			w.close(wl)
		}
		w.numaBalance(wl, seconds)
		clear(wl.used)
	}
}

// repay touches what was refused, once more.
func (w *World) repay(wl *workload) {
	for k, pages := range wl.owed {
		wl.owed[k] = 0
		w.touch(wl, linux.Kind(k), pages)
	}
}

// grow is package sim's growth and churn.
func (w *World) grow(wl *workload, seconds float64) {
	m, hours := &wl.spec.Memory, seconds/3600
	private, shared := sim.PagesOf(m.Private), sim.PagesOf(m.Shared)
	if held := private + shared; m.Growth > 0 && held > 0 {
		more := min(float64(hours*float64(m.Growth)/linux.PageBytes), float64((sim.GrowthLimit-1)*held)-wl.grown)
		if more > 0 {
			own := float64(more * (private / held))
			wl.grown += more
			w.touch(wl, linux.Private, own)
			w.touch(wl, linux.Shared, more-own)
		}
	}
	if m.CacheGrowth > 0 {
		w.touch(wl, linux.Cache, hours*float64(m.CacheGrowth)/linux.PageBytes)
	}
	if m.Churn <= 0 {
		return
	}
	share := 1 - exact.Exp(-float64(hours*m.Churn))
	w.renew(wl, linux.Private, share*sum(wl.group.Memory.Private))
	w.renew(wl, linux.Shared, share*sum(wl.group.Memory.Shared))
}

// renew frees pages and touches as many. Rows that lose and gain are told apart one by
// one.
func (w *World) renew(wl *workload, k linux.Kind, pages float64) {
	w.close(wl)
	w.open(wl)
	w.host.Release(&wl.group, k, pages)
	w.close(wl)
	w.open(wl)
	w.touch(wl, k, pages)
}
