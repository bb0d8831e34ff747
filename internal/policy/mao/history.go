// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"encoding/json"
	"fmt"
	"slices"

	"homenode/internal/unit"
)

// History is a node's CPU utilisation in past windows: busy/online CPUs, oldest
// first, at most Config.HistoryWindows.
//
// From one window to the next all but one figure stay the same, so states share
// old, which nobody changes; recent is each state's own. JSON knows only both
// together, as "utilisation".
type History struct {
	Node        int
	old, recent []float64
}

// recentWindows is how many figures a state has to itself. More are copied in every
// window, fewer mean that the shared ones are copied more often: about the root of
// twice the default HistoryWindows is the least of both.
const recentWindows = 32

// with returns the history and one more window, the oldest dropped beyond limit.
func (h History) with(utilisation float64, limit int) History {
	if len(h.recent) >= recentWindows {
		h.old, h.recent = slices.Concat(h.old, h.recent), nil
	}
	recent := make([]float64, 0, len(h.recent)+1)
	h.recent = append(append(recent, h.recent...), utilisation)
	excess := max(0, len(h.old)+len(h.recent)-limit)
	drop := min(excess, len(h.old))
	h.old, h.recent = h.old[drop:], h.recent[excess-drop:]
	return h
}

func (h History) len() int { return len(h.old) + len(h.recent) }

// historyJSON is the wire form.
type historyJSON struct {
	Node        int       `json:"node"`
	Utilisation []float64 `json:"utilisation"`
}

// MarshalJSON writes {"node":0,"utilisation":[0.5,…]}.
func (h History) MarshalJSON() ([]byte, error) {
	return json.Marshal(historyJSON{Node: h.Node, Utilisation: slices.Concat(h.old, h.recent)})
}

// UnmarshalJSON reads that form. On error the history becomes empty.
func (h *History) UnmarshalJSON(data []byte) error {
	*h = History{}
	var wire historyJSON
	if err := json.Unmarshal(data, &wire); err != nil {
		return fmt.Errorf("read history of a node: %w", err)
	}
	*h = History{Node: wire.Node, old: wire.Utilisation}
	return nil
}

// above says that v is above the 95th percentile of the node's history, without
// putting that in order: so many are below v. False while the history is shorter
// than need.
func (n *node) above(v float64, need int) bool {
	length := len(n.history) + len(n.recent)
	if length < need || need <= 0 {
		return false
	}
	below := 0
	for _, part := range [...][]float64{n.history, n.recent} {
		for _, u := range part {
			if u < v {
				below++
			}
		}
	}
	return below >= rank95(length)
}

// rank95 is ⌈0.95 n⌉: the place of the 95th percentile of n figures (nearest rank),
// counted from 1.
func rank95(n int) int { return (95*n + 99) / 100 }

// p95Of is the 95th percentile (nearest rank) of the node's history; false while
// that is shorter than need. It does not change as utilisations are projected. It is
// for the words: who only asks whether a figure is above it asks above.
func (n *node) p95Of(need int) (float64, bool) {
	length := len(n.history) + len(n.recent)
	if !n.hasP95 && length >= need && need > 0 {
		n.p95 = largest(length-rank95(length)+1, n.history, n.recent)
	}
	n.hasP95 = true
	return n.p95.Get()
}

// largest is the k-th largest of these figures, k at least 1; none if there are fewer.
func largest(k int, parts ...[]float64) unit.Opt[float64] {
	top := make([]float64, 0, k+1) // the k largest so far, ascending
	for _, part := range parts {
		for _, v := range part {
			if len(top) == k && v <= top[0] {
				continue
			}
			at, _ := slices.BinarySearch(top, v)
			if top = slices.Insert(top, at, v); len(top) > k {
				top = slices.Delete(top, 0, 1)
			}
		}
	}
	if len(top) < k {
		return unit.None[float64]()
	}
	return unit.Some(top[0])
}
