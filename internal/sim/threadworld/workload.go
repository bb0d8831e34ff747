// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"slices"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
)

// workload is one replica. While it is open, its Group has private pages by the node of
// their thread (pages.go).
type workload struct {
	*sim.Workload
	threads []thread
	random  detmath.Random // for the placement of its threads
	mask    []uint64       // CPUs that it may use

	key      uint64  // key of where its shared pages are
	straggle float64 // sim.Spec.Straggle; 1: its threads do not wait for each other
	pace     float64 // operations per second of each thread, where threads wait for each other
	need     float64 // operations per second of all threads, where they come as requests
	cycles   float64 // cycles of an operation, the mean over its threads
	numa     numa
	wakeRate float64 // per thread and second

	used []float64 // CPU seconds by node since the last tick
	llc  float64   // bytes
	tail tail
}

// closed reports that its threads do one operation after the other and never stop.
func (wl *workload) closed() bool {
	return wl.Demand.Closed && wl.Spec.Demand.Think == 0 && wl.Spec.Work.Barrier == 0
}

// prepare makes a workload's threads and numbers them. Threads of all workloads are
// numbered in order, and known by these numbers.
func (w *World) prepare(x *sim.Workload) {
	n := len(w.nodes)
	wl := &workload{Workload: x, straggle: 1, threads: make([]thread, x.Spec.Threads)}
	if s := x.Spec; s.Work.Barrier > 0 && s.Threads > 1 {
		wl.straggle = s.Straggle()
	}
	room := make([]float64, n*len(wl.threads))
	for i := range wl.threads {
		t := &wl.threads[i]
		*t = thread{wl: wl, index: i, cpu: -1, prefer: -1, private: room[i*n : i*n+n : i*n+n]}
		w.ids = append(w.ids, t)
		t.id = len(w.ids)
	}
	w.of[x] = wl
}

// Begin places the threads of an arriving workload (starts.go).
func (w *World) Begin(x *sim.Workload) {
	wl := w.of[x]
	wl.used = make([]float64, len(w.nodes))
	wl.random = detmath.NewRandom(w.Config.Seed, wl.ID, "threads")
	wl.Group.Pinned = true // linux.Host leaves its threads where they are
	w.remask(wl)
	w.Ask(x, w.Config.Step)
	w.start(wl)
	w.live = append(w.live, wl)
}

// End takes the threads of a departing workload off their CPUs.
func (w *World) End(x *sim.Workload) {
	wl := w.of[x]
	for i := range wl.threads {
		w.leave(&wl.threads[i])
	}
	w.live = slices.DeleteFunc(w.live, func(o *workload) bool { return o == wl })
	w.stale, w.changed = true, true
}

// MainNode is the node of the first thread.
func (w *World) MainNode(x *sim.Workload) int { return w.cpus[w.of[x].threads[0].cpu].node }

// CPUsChanged moves threads off CPUs that they may no longer use.
func (w *World) CPUsChanged(x *sim.Workload) {
	w.remask(w.of[x])
	w.evict(w.of[x])
}

// remask recomputes which CPUs threads may use by the cpuset.
func (w *World) remask(wl *workload) {
	wl.mask = w.maskOf(wl.CPUs)
	for i := range wl.threads {
		w.allow(&wl.threads[i])
	}
}
