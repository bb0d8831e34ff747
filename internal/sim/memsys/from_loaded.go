// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/profile"
)

// controllers gives each node's controllers their capacity, and their curve of latency by
// load:
//
//  1. From the node's own curve ("node 0, local"), else from the whole machine's, where
//     each node with CPUs has its share.
//  2. Capacity is the measured peak, or the highest bandwidth of the curve.
//  3. A point is the bandwidth as a share of the capacity, and the latency as a multiple
//     of the idle one. More bandwidth does not make latency shorter: points that say so are
//     noise, and are replaced by their mean (pool adjacent violators).
func (f *figures) controllers(y *System) {
	for i := range y.Nodes {
		n := f.m.Nodes[i]
		curve, nodes := f.curveOf(n) // 1
		bytes := f.peak(n)
		for _, p := range curve.Points {
			bytes = math.Max(bytes, p.Bandwidth.Median.Or(0)/nodes) // 2
		}
		f.checkCurve(curve, y.Latency[i][i]/f.hz*1e9)
		y.Nodes[i].Server = Server{Cycles: LineBytes * f.hz / bytes, Curve: points(curve, bytes*nodes, y.Latency[i][i]/f.hz*1e9)}
	}
}

// curveOf is number 1, and the number of nodes whose bandwidth the curve shows.
func (f *figures) curveOf(n machine.Node) (profile.Curve, float64) {
	for _, c := range f.p.Loaded {
		if c.From == n.ID && c.To == n.ID && !whole(c) {
			return c, 1
		}
	}
	for _, c := range f.p.Loaded {
		if whole(c) && !n.CPUs.IsEmpty() {
			return c, float64(f.m.NodesWithCPUs().Intersect(f.m.NodesWithMemory()).Len())
		}
	}
	return profile.Curve{}, 1
}

func whole(c profile.Curve) bool { return strings.HasPrefix(c.Name, "whole machine") }

// peak is the bytes/s that a node's memory delivers.
func (f *figures) peak(n machine.Node) float64 {
	for _, p := range f.p.Peak {
		if b, ok := p.Median.Get(); ok && p.Node == n.ID && b > 0 {
			return b
		}
	}
	best := 0.0
	for _, from := range f.m.Nodes {
		if b, ok := f.p.BandwidthBetween(from.ID, n.ID); ok && (from.ID == n.ID || n.CPUs.IsEmpty()) {
			best = math.Max(best, b.Median.Or(0))
		}
	}
	if best > 0 {
		return best
	}
	for _, a := range n.Access {
		if b, ok := a.ReadBandwidth.Get(); ok && b > 0 {
			return float64(b)
		}
	}
	if n.CPUs.IsEmpty() {
		f.guess("34 GB/s of memory without CPUs")
		return usualDevice
	}
	f.guess("memory bandwidth by cores")
	return max(leastBandwidth, perCore*f.modules(n))
}

// Memory bandwidth that was not measured, bytes/s. Makers give a core about as much whatever
// the generation: 3.75 GB/s of a Skylake of 28 cores and 105 GB/s. Held to others: four
// modules of an Opteron 6272 have 16.4 (estimate 15), a Gold 6130 of 16 cores serves 73
// (estimate 60), a Xeon E5-2683 v4 of 16 moves 44 to 49 for programs that saturate it
// (estimate 60). One channel is the least.
const (
	perCore        = 3.75e9
	leastBandwidth = 10e9
	usualDevice    = 34e9 // memory without CPUs
)

// modules is the number of a node's cores; two that share an L2 (a Bulldozer module) count
// as one.
func (f *figures) modules(n machine.Node) float64 {
	cores, pairs := 0, 0
	for _, c := range f.m.Cores {
		if c.Overlaps(n.CPUs) {
			cores++
		}
	}
	for _, c := range f.m.L2s {
		if c.CPUs.Overlaps(n.CPUs) {
			pairs++
		}
	}
	switch {
	case cores == 0:
		return float64(n.CPUs.Len()) / float64(f.threads())
	case cores == 2*pairs:
		return float64(pairs)
	}
	return float64(cores)
}

// checkCurve tells of a loaded latency below the idle one, by more than noise. Such points
// count as idle.
func (f *figures) checkCurve(c profile.Curve, idle float64) {
	for _, p := range c.Points {
		if ns, ok := p.Latency.Median.Get(); ok && ns < 0.9*idle {
			f.guess(fmt.Sprintf("waits at light load, as %q has a loaded latency below the idle %.0f ns", c.Name, idle))
			return
		}
	}
}

// points is number 3.
func points(c profile.Curve, capacity, idle float64) []Point {
	var all []Point
	for _, p := range c.Points {
		bytes, ok := p.Bandwidth.Median.Get()
		ns, ok2 := p.Latency.Median.Get()
		if ok && ok2 && bytes > 0 && ns > 0 {
			all = append(all, Point{bytes / capacity, math.Max(1, ns/idle)})
		}
	}
	if len(all) < 2 {
		return nil // one point is no curve
	}
	slices.SortFunc(all, func(a, b Point) int { return cmp.Or(cmp.Compare(a.X, b.X), cmp.Compare(a.Y, b.Y)) })
	return pooled(all)
}

// pooled makes Y non-decreasing: neighbours that fall are replaced by their mean.
func pooled(all []Point) []Point {
	type pool struct{ sum, n float64 }
	var pools []pool
	for _, p := range all {
		pools = append(pools, pool{p.Y, 1})
		for k := len(pools) - 1; k > 0 && pools[k-1].sum*pools[k].n > pools[k].sum*pools[k-1].n; k-- {
			pools[k-1].sum += pools[k].sum
			pools[k-1].n += pools[k].n
			pools = pools[:k]
		}
	}
	at := 0
	for _, p := range pools {
		for range int(p.n) {
			all[at].Y = p.sum / p.n
			at++
		}
	}
	return all
}
