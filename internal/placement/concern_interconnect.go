// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
)

// interconnect is what nodes of a set can read of each other: the sum of the bandwidths
// between them, both ways, where it was measured or given; else the number of direct
// links by the SLIT.
func interconnect() Concern {
	return Concern{
		Name: "interconnect", Unit: "bytes/s or links", Help: "bandwidth between the nodes in use, or direct links where it is not known",
		Weigh: func(m machine.Machine, nodes []int, links *Links) (Weights, bool) {
			if links != nil {
				return links.weights(nodes), true
			}
			return hops(m, nodes)
		},
	}
}

// hops has a 1 for each pair of nodes at the machine's smallest distance; of both
// directions the larger counts. False: no distance is known.
func hops(m machine.Machine, nodes []int) (Weights, bool) {
	w, nearest := newWeights(len(nodes)), 0
	apart := func(i, j int) int {
		there, ok := m.Distance(nodes[i], nodes[j]).Get()
		back, known := m.Distance(nodes[j], nodes[i]).Get()
		if !ok || !known {
			return 0
		}
		return max(there, back)
	}
	for i := range nodes {
		for j := range i {
			if d := apart(i, j); d > 0 && (nearest == 0 || d < nearest) {
				nearest = d
			}
		}
	}
	for i := range nodes {
		for j := range i {
			if nearest > 0 && apart(i, j) == nearest {
				w.Pair[i][j], w.Pair[j][i] = 1, 1
			}
		}
	}
	return w, nearest > 0 || len(nodes) == 1
}
