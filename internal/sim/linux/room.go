// SPDX-License-Identifier: Apache-2.0

package linux

// Movable is what Move could take from each node, and put on each, in pages. It changes
// nothing; gives and takes are overwritten.
func (h *Host) Movable(g *Group, from, to []bool, cache bool, gives, takes []float64) (pages, room float64) {
	h.prepare()
	for k := range h.Nodes {
		gives[k], takes[k] = 0, 0
		switch {
		case to[k] && g.Mems[k]:
			takes[k] = h.roomOn(k)
			room += takes[k]
		case !to[k] && (from == nil || from[k]):
			gives[k] = g.movable(k, cache)
			pages += gives[k]
		}
	}
	return pages, room
}
