// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Site is where on the machine a workload ran in a window. A part that is not known is
// unknown.
type Site struct {
	Cache unit.Opt[unit.Bytes] // size of the last-level caches that it ran in; the smallest of several
	// Caches is their number, weighted by its time: 1 / the sum of squared shares. Its
	// total occupancy divided by that is its occupancy where it runs.
	Caches unit.Opt[float64]
	// Shares is its time by last-level cache, sum 1; nil: unknown.
	Shares []float64
	// Far is the distance of the part of its memory that is on other nodes than its CPUs,
	// in local distances beyond the own: 1 at a SLIT distance of 20.
	Far unit.Opt[float64]
}

// SiteOf uses the CPUs of its threads; where threads are not read, its CPU time on each
// node. Where neither is known, the CPUs that it may use say something only if they share
// one cache: unbound, they are the whole machine.
func SiteOf(m machine.Machine, w *window.Window, wl *window.Workload) Site {
	shares, ok := cachesOfThreads(m, wl)
	if !ok {
		shares, ok = cachesOfNodes(m, w, wl)
	}
	if !ok {
		shares, ok = onlyCache(m, wl)
	}
	s := Site{Far: farOf(m, w, wl)}
	if !ok {
		return s
	}
	sum, squares := 0.0, 0.0
	for k, x := range shares {
		sum += x
		squares += float64(x * x)
		if size, ok := m.LLCs[k].Size.Get(); ok && x > 0 && size < s.Cache.Or(math.MaxInt64) {
			s.Cache = unit.Some(size)
		}
	}
	if s.Caches = unit.OptOf(float64(sum*sum)/squares, squares > 0); sum > 0 {
		for k := range shares {
			shares[k] /= sum
		}
		s.Shares = shares
	}
	return s
}

// cachesOfThreads is CPU time by last-level cache, from where each thread is at the end.
func cachesOfThreads(m machine.Machine, wl *window.Workload) ([]float64, bool) {
	shares, any := make([]float64, len(m.LLCs)), false
	for k := range wl.Threads {
		t := &wl.Threads[k]
		id, ok := t.CPU.Get()
		if !ok {
			return nil, false
		}
		c, _ := m.CPU(id)
		if at, ok := c.LLC.Get(); ok {
			shares[at] += t.Used.Or(1)
			any = any || t.Used.Or(1) > 0
		}
	}
	return shares, any
}

// cachesOfNodes is the same from CPU time by node. In a node with several caches, it counts
// as many as the threads there can have used.
func cachesOfNodes(m machine.Machine, w *window.Window, wl *window.Workload) ([]float64, bool) {
	shares, any := make([]float64, len(m.LLCs)), false
	for k := range wl.CPUByNode {
		used := wl.CPUByNode[k].Or(0)
		if used <= 0 || k >= len(w.Nodes) {
			continue
		}
		cpus := m.CPUsOf(set.FromNodes(w.Nodes[k].ID))
		if may := wl.Binding.CPUs; !may.IsEmpty() {
			cpus = cpus.Intersect(may)
		}
		var there []int
		for c := range m.LLCs {
			if m.LLCs[c].CPUs.Overlaps(cpus) && float64(len(there)) < used {
				there = append(there, c)
			}
		}
		for _, c := range there {
			shares[c] += used / float64(len(there))
			any = true
		}
	}
	return shares, any
}

// onlyCache handles a workload whose CPUs share one cache.
func onlyCache(m machine.Machine, wl *window.Workload) ([]float64, bool) {
	shares, n := make([]float64, len(m.LLCs)), 0
	for k := range m.LLCs {
		if m.LLCs[k].CPUs.Overlaps(wl.Binding.CPUs) {
			shares[k] = 1
			n++
		}
	}
	return shares, n == 1
}

// farOf is a mean over all pairs of nodes, weighted by CPU time and memory. Threads are
// assumed to read all of their memory equally, and page cache rarely.
func farOf(m machine.Machine, w *window.Window, wl *window.Workload) unit.Opt[float64] {
	sum, weights := 0.0, 0.0
	for i := range min(len(wl.CPUByNode), len(w.Nodes)) {
		used := wl.CPUByNode[i].Or(0)
		for k := range min(len(wl.AnonByNode), len(w.Nodes)) {
			weight := float64(used * float64(wl.AnonByNode[k].Or(0)))
			if i == k || weight <= 0 {
				continue
			}
			d, ok := m.Distance(w.Nodes[i].ID, w.Nodes[k].ID).Get()
			if !ok {
				d = unknownDistance
			}
			weights += weight
			sum += float64(weight * (float64(d)/machine.LocalDistance - 1))
		}
	}
	return unit.OptOf(sum/weights, weights > 0)
}
