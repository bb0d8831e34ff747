// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"homenode/internal/machine"
	"homenode/internal/profile"
)

// How long a line takes that another core modified, by group: below one LLC, between LLCs
// of a node (CCDs of an EPYC), between nodes of a package, between packages. Without
// figures, seconds and shares of the DRAM latency:
const (
	usualTransfer  = 48e-9 // below one LLC that is the node's: a mesh (Intel's MLC)
	remoteTransfer = 0.8   // between nodes: as machine.Model.Transfer
	// Where a node has several LLCs, a group's own is small and near, and all else passes
	// the memory's fabric and its directory, the farther the longer, however long a read of
	// memory takes. The order reported for EPYC: 25 ns and 100 in a node, above 200 between
	// sockets.
	groupTransfer   = 25e-9
	betweenTransfer = 100e-9
)

// inLLC is the cycles for a line of another core below the same LLC.
func (f *figures) inLLC(n machine.Node) float64 {
	if ns, ok := f.measuredTransfer(func(c profile.CoreFigure, from, to int) bool {
		return c.Level == profile.SameLLC && from == n.ID
	}); ok {
		return ns / 1e9 * f.hz
	}
	if ns, ok := f.measuredTransfer(func(c profile.CoreFigure, _, _ int) bool { return c.Level == profile.SameLLC }); ok {
		return ns / 1e9 * f.hz
	}
	f.guess("transfers between cores")
	if f.grouped(n) {
		return groupTransfer * f.hz
	}
	return usualTransfer * f.hz
}

// transfer is the cycles for a line that another core modified, below another LLC of the
// node or on another node:
//
//  1. Measured between these nodes, either way.
//  2. Else between nodes as near: of one package or of two, at the same distance.
//  3. Else an estimate.
func (f *figures) transfer(n, to machine.Node, latency float64) float64 {
	if n.ID == to.ID && !f.grouped(n) {
		return f.inLLC(n)
	}
	level := profile.Between
	if n.ID == to.ID {
		level = profile.SameNode
	}
	distance := f.m.Distance(n.ID, to.ID)
	one := f.onePackage(n.ID, to.ID)
	ns, ok := f.measuredTransfer(func(c profile.CoreFigure, a, b int) bool { // 1
		return c.Level == level && (a == n.ID && b == to.ID || a == to.ID && b == n.ID)
	})
	if !ok {
		ns, ok = f.measuredTransfer(func(c profile.CoreFigure, a, b int) bool { // 2
			return c.Level == level && (level == profile.SameNode || distance.Known() && c.Distance == distance && f.onePackage(a, b) == one)
		})
	}
	switch { // 3
	case ok:
		return ns / 1e9 * f.hz
	case f.grouped(n) || f.grouped(to):
		f.guess("transfers between cores")
		return betweenTransfer * f.hz * latency / (f.latency(n.ID, n.ID) * f.hz)
	}
	f.guess("transfers between cores")
	return latency * remoteTransfer
}

// measuredTransfer is the mean of the figures that fit, ns. A figure whose CPUs are of no
// known node has -1 for it.
func (f *figures) measuredTransfer(fits func(c profile.CoreFigure, from, to int) bool) (float64, bool) {
	sum, n := 0.0, 0
	for _, c := range f.p.CoreToCore {
		from, ok := f.m.NodeOf(c.CPUs[0])
		to, ok2 := f.m.NodeOf(c.CPUs[1])
		if !ok || !ok2 {
			from, to = -1, -1
		}
		if ns, ok := c.Median.Get(); ok && ns > 0 && fits(c, from, to) {
			sum, n = sum+ns, n+1
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// grouped reports that a node has several LLCs.
func (f *figures) grouped(n machine.Node) bool { return f.groups(n) > 1 }

func (f *figures) groups(n machine.Node) (count int) {
	for _, c := range f.m.LLCs {
		if c.CPUs.Overlaps(n.CPUs) {
			count++
		}
	}
	return count
}

func (f *figures) onePackage(a, b int) bool {
	p, ok := f.m.NodePackage(a)
	q, ok2 := f.m.NodePackage(b)
	return ok && ok2 && p == q
}
