// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/unit"
)

// History is a node's CPU utilisation in past windows: busy/online CPUs, oldest
// first, at most Config.HistoryWindows. It is never changed, only replaced.
type History struct {
	Node        int       `json:"node"`
	Utilisation []float64 `json:"utilisation"`
}

// with returns the history with one more window, and drops the oldest beyond limit.
func (h History) with(utilisation float64, limit int) History {
	kept := h.Utilisation[max(0, len(h.Utilisation)+1-limit):]
	h.Utilisation = append(append(make([]float64, 0, len(kept)+1), kept...), utilisation)
	return h
}

// p95 is the 95th percentile (nearest rank: the ⌈0.95 n⌉-th smallest); unknown while
// the history is shorter than need. Only the largest 5 % are put in order.
func (h History) p95(need int) unit.Opt[float64] {
	n := len(h.Utilisation)
	if n < need || n == 0 {
		return unit.None[float64]()
	}
	k := n - (95*n+99)/100 + 1
	top := make([]float64, 0, k+1) // the k largest so far, ascending
	for _, v := range h.Utilisation {
		if len(top) == k && v <= top[0] {
			continue
		}
		at, _ := slices.BinarySearch(top, v)
		if top = slices.Insert(top, at, v); len(top) > k {
			top = slices.Delete(top, 0, 1)
		}
	}
	return unit.Some(top[0])
}

// Histories are the nodes' histories: the part of a state that outlives its process.
func (s State) Histories() []History { return slices.Clone(s.Nodes) }

// WithHistories is the state with these histories instead of its own.
func (s State) WithHistories(all []History) State {
	s.Nodes = slices.SortedFunc(slices.Values(all), func(a, b History) int { return cmp.Compare(a.Node, b.Node) })
	return s
}
