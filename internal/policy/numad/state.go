// SPDX-License-Identifier: Apache-2.0

package numad

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/set"
)

// State is what numad remembers between windows: a plain value. The zero State is
// a fresh start.
type State struct {
	Next      time.Time `json:"next"` // the earliest time of the next scan
	Workloads []Memory  `json:"workloads,omitempty"`
}

// Memory is what it remembers of a workload; sorted by ID.
type Memory struct {
	Workload string      `json:"workload"`
	Nodes    set.NodeSet `json:"nodes,omitzero"` // where it was bound to; empty: nowhere
	Seen     time.Time   `json:"seen"`           // when nodes were picked for it; zero: never
	Pending  bool        `json:"pending,omitempty"`
}

// find returns the index of a workload, and whether it is there.
func (s State) find(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Workloads, id, func(m Memory, id string) int { return cmp.Compare(m.Workload, id) })
}

// of returns what is remembered of a workload.
func (s State) of(id string) Memory {
	if i, ok := s.find(id); ok {
		return s.Workloads[i]
	}
	return Memory{Workload: id}
}
