// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"
)

// Histories are the nodes' pasts: what of a state outlives the process that made it.
func (s State) Histories() []History { return slices.Clone(s.Nodes) }

// WithHistories is the state with these pasts instead of its own.
func (s State) WithHistories(all []History) State {
	s.Nodes = slices.SortedFunc(slices.Values(all), func(a, b History) int { return cmp.Compare(a.Node, b.Node) })
	return s
}

// Utilisation is the history's figures, oldest first.
func (h History) Utilisation() []float64 { return slices.Concat(h.old, h.recent) }
