// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/unit"
)

// Owed is the pages, by kind (linux.Kind), that a workload requested and that were refused.
type Owed [linux.Cache]float64

// Bytes is their total.
func (o Owed) Bytes() unit.Bytes {
	return linux.BytesOf(o[linux.Private] + o[linux.Shared] + o[linux.Mapped])
}

// problems lists what a kernel would have written to its log, or its OOM killer.
func (w *World) problems() (all []string) {
	for _, wl := range w.all {
		if owed := wl.Owed.Bytes(); wl.Here() && owed > 0 {
			all = append(all, fmt.Sprintf("give %s memory: out of memory: %v refused, and asked for again", wl.ID, owed))
		}
	}
	return all
}

// fill is the first touch of all of a workload's memory.
//
//  1. Private memory is touched by its thread, page cache by the thread that reads it.
//  2. Shared memory is touched by the main thread, unless the workers touch it.
//  3. Or all of it is touched elsewhere, if the spec says so. That is no binding: what has
//     no room there goes along the zonelist, as from threads that ran there. An interleave
//     falls over in the same way, so an interleave over one node does exactly this.
func (w *World) fill(wl *Workload) {
	m, g := wl.Spec.Memory, &wl.Group
	policy := g.Policy
	if touch := wl.Spec.Start.Touch; !touch.IsEmpty() && policy.Mode == linux.Local { // 3
		g.Policy = linux.Policy{Mode: linux.Interleave, Nodes: indexes(w.Config.Machine, touch)}
	}
	w.population.Open(wl)
	w.touch(wl, linux.Private, pagesOf(m.Private)) // 1
	on := g.On
	if m.Toucher != "workers" { // 2
		main := w.population.MainNode(wl)
		g.On = make([]float64, len(on))
		g.On[main] = g.Threads
	}
	w.touch(wl, linux.Shared, pagesOf(m.Shared))
	w.touch(wl, linux.Mapped, pagesOf(m.Files))
	g.On = on
	w.touch(wl, linux.Cache, pagesOf(m.Cache))
	g.Policy = policy
	w.population.Close(wl)
}

// touch is linux.Touch. Refused pages are owed: a kernel would have killed a process for
// them. Page cache that finds no room costs only time.
func (w *World) touch(wl *Workload, k linux.Kind, pages float64) {
	if pages <= 0 {
		return
	}
	if refused := w.Host.Touch(&wl.Group, k, pages); k != linux.Cache {
		wl.Owed[k] += refused
	}
}

// Grow changes a workload's memory over some seconds: it requests again what was refused,
// grows, and frees and touches anew.
func (w *World) Grow(wl *Workload, seconds float64) {
	if m := &wl.Spec.Memory; m.Growth <= 0 && m.CacheGrowth <= 0 && m.Churn <= 0 && wl.Owed == (Owed{}) {
		return
	}
	w.population.Open(wl)
	for k, pages := range wl.Owed {
		wl.Owed[k] = 0
		w.touch(wl, linux.Kind(k), pages)
	}
	w.grow(wl, seconds)
	w.population.Close(wl)
}

// growthLimit is the multiple of the start's memory up to which anonymous memory grows. It
// is a choice; leaks end in a restart.
const growthLimit = 2

// grow covers seconds of running: a workload that stands still allocates nothing.
func (w *World) grow(wl *Workload, seconds float64) {
	m, hours := &wl.Spec.Memory, seconds/3600
	held := pagesOf(m.Private) + pagesOf(m.Shared)
	if m.Growth > 0 && held > 0 {
		more := min(hours*float64(m.Growth)/linux.PageBytes, (growthLimit-1)*held-wl.Grown)
		if more > 0 {
			private := more * (pagesOf(m.Private) / held)
			wl.Grown += more
			w.touch(wl, linux.Private, private)
			w.touch(wl, linux.Shared, more-private)
		}
	}
	if m.CacheGrowth > 0 {
		w.touch(wl, linux.Cache, hours*float64(m.CacheGrowth)/linux.PageBytes)
	}
	if m.Churn > 0 {
		share := 1 - detmath.Exp(-(hours * m.Churn)) // the same, however the time is cut into steps
		w.renew(wl, linux.Private, share*detmath.Sum(wl.Group.Memory.Private))
		w.renew(wl, linux.Shared, share*detmath.Sum(wl.Group.Memory.Shared))
	}
}

// renew frees pages and touches as many. Each half is closed by itself, as Close cannot
// tell a loss and a gain of the same page apart.
func (w *World) renew(wl *Workload, k linux.Kind, pages float64) {
	w.reopen(wl)
	w.Host.Release(&wl.Group, k, pages)
	w.reopen(wl)
	w.touch(wl, k, pages)
}

func (w *World) reopen(wl *Workload) {
	w.population.Close(wl)
	w.population.Open(wl)
}

func pagesOf[B ~int64](b B) float64 { return math.Ceil(float64(b) / linux.PageBytes) }
