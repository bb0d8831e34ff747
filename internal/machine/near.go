// SPDX-License-Identifier: Apache-2.0

package machine

import "homenode/internal/set"

// Nearness says how the CPUs next to a node's memory are known.
type Nearness string

// The ways, best first. "" is unknown: no CPU is nearer than another, or nothing tells.
const (
	OwnCPUs       Nearness = "own"
	ByInitiators  Nearness = "firmware (HMAT)"
	ByHwloc       Nearness = "hwloc"
	ByDistance    Nearness = "SLIT"
	NearnessUnset Nearness = ""
)

// NearCPUs are the CPUs next to a node's memory:
//
//  1. Its own.
//  2. Those of the nodes that HMAT calls its best initiators; first the best CPUs (class
//     1), then the best of any kind, which may be CPUs too.
//  3. Those that hwloc's XML names.
//  4. Those of the nodes with the smallest SLIT distance, unless all are as far.
func (m Machine) NearCPUs(id int) (set.CPUSet, Nearness) {
	n, ok := m.Node(id)
	switch {
	case !ok:
		return set.CPUSet{}, NearnessUnset
	case !n.CPUs.IsEmpty(): // 1
		return n.CPUs, OwnCPUs
	}
	for _, class := range []int{1, 0} { // 2
		for _, a := range n.Access {
			if cpus := m.CPUsOf(a.Initiators); a.Class == class && !cpus.IsEmpty() {
				return cpus, ByInitiators
			}
		}
	}
	if !n.Near.IsEmpty() { // 3
		return n.Near, ByHwloc
	}
	return m.nearestCPUs(n) // 4
}

func (m Machine) nearestCPUs(n Node) (set.CPUSet, Nearness) {
	var nearest set.NodeSet
	least, most := maxDistance, 0
	for other := range m.NodesWithCPUs().All() {
		d, ok := m.Distance(n.ID, other).Get()
		switch {
		case !ok || d == noWay:
		case d < least:
			least, nearest = d, set.FromNodes(other)
		case d == least:
			nearest = nearest.With(other)
		}
		most = max(most, d) // 255 too: not all are as far
	}
	if nearest.IsEmpty() || least == most && m.NodesWithCPUs().Len() > 1 {
		return set.CPUSet{}, NearnessUnset
	}
	return m.CPUsOf(nearest), ByDistance
}
