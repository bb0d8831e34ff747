// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// State is what MAO remembers between windows: a plain value, printable as JSON. Step never
// changes a State; it returns another. The zero State is a fresh start.
type State struct {
	Nodes     []History `json:"nodes,omitempty"`     // ascending by node id
	Workloads []Memory  `json:"workloads,omitempty"` // ascending by workload ID
}

// Memory is what MAO remembers of a workload.
type Memory struct {
	Workload string `json:"workload"`
	// Nodes is the binding MAO wants, since window Since; empty: none.
	Nodes set.NodeSet `json:"nodes,omitzero"`
	// May are the nodes that it was allowed before it was bound; empty: unknown. Was are
	// the nodes of the binding before it was widened.
	May   set.NodeSet `json:"may,omitzero"`
	Was   set.NodeSet `json:"was,omitzero"`
	Since uint64      `json:"since,omitempty"`
	// Aside are the nodes that it is limited to, so that bound workloads have the others.
	Aside set.NodeSet `json:"aside,omitzero"`
	// Not to be bound before window NotBefore. Backoff is the length of that wait.
	NotBefore uint64 `json:"not_before,omitempty"`
	Backoff   uint64 `json:"backoff,omitempty"`
	// Demand is the smoothed CPU use, in CPUs.
	Demand unit.Opt[float64] `json:"cpu_demand,omitzero"`
	// Below counts the windows in a row in which the local access ratio missed its target.
	// Local holds the last known ratios, oldest first.
	Below int          `json:"below,omitempty"`
	Local []unit.Ratio `json:"local,omitempty"`
	// From is the source of both, last at LocalAt: figures from two sources are never
	// mixed.
	From    window.LocalSource `json:"local_from,omitempty"`
	LocalAt uint64             `json:"local_at,omitempty"`
	// Anon is its anonymous memory in the last window that had it, Peak the most so far,
	// Growth its smoothed increase per second: bytes. Need is what it had and needed when
	// its binding ended because that was not available. See widen.go.
	Anon   unit.Opt[unit.Bytes] `json:"anon_bytes,omitzero"`
	Peak   unit.Bytes           `json:"peak_bytes,omitempty"`
	Growth float64              `json:"growth_bytes_per_s,omitempty"`
	Need   unit.Bytes           `json:"need_bytes,omitempty"`
	// Quality is how well it does, once bound; nil: nothing is known. See isolate.go.
	Quality *Quality `json:"quality,omitempty"`
	// Absent counts the windows in a row without it.
	Absent int `json:"absent,omitempty"`
}

func (m Memory) bound() bool { return !m.Nodes.IsEmpty() }

// placed reports that homenode set something for it: it is bound, or keeps aside.
func (m Memory) placed() bool { return m.bound() || !m.Aside.IsEmpty() }

// localHistory is how many ratios Memory.Local keeps: a screenful. Each costs 8 bytes per
// workload.
const localHistory = 16

// find returns what is remembered of a workload; the zero Memory if nothing.
func (s State) find(id string) Memory {
	i, ok := s.index(id)
	if !ok {
		return Memory{Workload: id}
	}
	return s.Workloads[i]
}

// index returns the index of a workload in Workloads.
func (s State) index(id string) (int, bool) {
	return slices.BinarySearchFunc(s.Workloads, id, func(m Memory, id string) int { return cmp.Compare(m.Workload, id) })
}

// history returns a node's history; empty if there is none.
func (s State) history(node int) History {
	for _, h := range s.Nodes {
		if h.Node == node {
			return h
		}
	}
	return History{Node: node}
}

// Bound returns the binding that MAO wants for a workload; empty: none.
func (s State) Bound(workload string) set.NodeSet { return s.find(workload).Nodes }

// release forgets the binding and backs off, doubling up to the cap. A binding that lasted
// four times the last back-off resets it.
func (m Memory) release(cfg Config, seq uint64) Memory {
	if m.bound() && seq >= m.Since && seq-m.Since >= 4*m.Backoff {
		m.Backoff = 0
	}
	m.Backoff = min(max(2*m.Backoff, cfg.BackoffWindows), cfg.BackoffCap)
	m.NotBefore = seq + m.Backoff
	m.Nodes, m.Aside, m.Since = set.NodeSet{}, set.NodeSet{}, 0
	m.May, m.Was = set.NodeSet{}, set.NodeSet{}
	return m
}
