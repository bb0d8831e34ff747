// SPDX-License-Identifier: Apache-2.0

package linux

import "homenode/internal/sim/detmath"

// Homes overwrites out with the share of the accesses of g's threads on node t that goes to
// each node. The share `private` of accesses goes to private pages (below 0: by size, like
// all others); the rest goes to shared and mapped pages, by size. A kind without pages
// leaves its share to the others; with no pages at all, accesses go to t.
func (g *Group) Homes(out []float64, t int, private float64) {
	m, n := &g.Memory, len(out)
	row := m.Private[t*n : t*n+n]
	own, all := detmath.Sum(row), 0.0
	for k := range out {
		out[k] = m.Shared[k] + m.Mapped[k]
		all += out[k]
	}
	if private < 0 {
		private = 0
		if mine := detmath.Sum(m.Private); mine > 0 {
			private = mine / (mine + all)
		}
	}
	switch {
	case own <= 0 && all <= 0:
		out[t] = 1
		return
	case own <= 0:
		private = 0
	case all <= 0:
		private, all = 1, 1
	}
	for k := range out {
		out[k] = out[k] * ((1 - private) / all)
		if own > 0 {
			out[k] += row[k] * (private / own)
		}
	}
}
