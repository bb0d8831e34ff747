// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Kind is what a page is for the one who moves it.
type Kind string

// The kinds. Each page of a workload is of exactly one.
const (
	Anon    Kind = "anon"    // private memory in small pages
	THP     Kind = "thp"     // private memory in transparent huge pages
	Shmem   Kind = "shmem"   // shared memory: tmpfs, memfd, System V
	Hugetlb Kind = "hugetlb" // from the pool of huge pages
	File    Kind = "file"    // of a file, and mapped by a process of the workload
	Cache   Kind = "cache"   // of a file that the workload maps or has open, and mapped by none of it
)

// Kinds in the order in which they are shown.
func Kinds() []Kind { return []Kind{Anon, THP, Shmem, Hugetlb, File, Cache} }

// About is a kind in a few words.
func (k Kind) About() string {
	return map[Kind]string{
		Anon: "private memory", THP: "private memory in huge pages", Shmem: "shared memory", Hugetlb: "pool of huge pages",
		File: "mapped files", Cache: "page cache nobody maps",
	}[k]
}

// Census is how much of a workload's memory is where. A page that several of its
// processes map counts once where that can be told (files and shared memory
// always; private memory that a fork left shared needs CAP_SYS_ADMIN).
type Census struct {
	Rows      []Row `json:"rows"` // in the order of Kinds, only of kinds that it has
	Processes int   `json:"processes"`
	Files     int   `json:"files"` // whose pages are in it
	// Foreign is what of it processes outside of the workload map or hold open too.
	Foreign unit.Opt[unit.Bytes] `json:"foreign_bytes"`
	Swapped unit.Bytes           `json:"swapped_bytes,omitempty"` // on no node
	// Problems is what could not be looked at, a sentence each.
	Problems []string `json:"problems,omitempty"`
}

// Row is one kind.
type Row struct {
	Kind  Kind        `json:"kind"`
	Nodes []NodeBytes `json:"nodes"` // ascending, only nodes that have some
}

// NodeBytes is what of a kind is on one node.
type NodeBytes struct {
	Node  int        `json:"node"`
	Bytes unit.Bytes `json:"bytes"`
}

// Add counts pages of a kind on a node.
func (c *Census) Add(k Kind, node int, b unit.Bytes) {
	if b == 0 {
		return
	}
	r := c.row(k)
	at := 0
	for at < len(r.Nodes) && r.Nodes[at].Node < node {
		at++
	}
	if at == len(r.Nodes) || r.Nodes[at].Node != node {
		r.Nodes = append(r.Nodes[:at], append([]NodeBytes{{Node: node}}, r.Nodes[at:]...)...)
	}
	r.Nodes[at].Bytes += b
}

// row finds or makes the row of a kind, in the order of Kinds.
func (c *Census) row(k Kind) *Row {
	at := 0
	for _, kind := range Kinds() {
		here := at < len(c.Rows) && c.Rows[at].Kind == kind
		switch {
		case kind == k && here:
			return &c.Rows[at]
		case kind == k:
			c.Rows = append(c.Rows[:at], append([]Row{{Kind: k}}, c.Rows[at:]...)...)
			return &c.Rows[at]
		case here:
			at++
		}
	}
	panic("migration: no such kind: " + string(k))
}

// Of is the row of a kind; false when there is none of it.
func (c Census) Of(k Kind) (Row, bool) {
	for _, r := range c.Rows {
		if r.Kind == k {
			return r, true
		}
	}
	return Row{}, false
}

// On is what of a row is on nodes.
func (r Row) On(nodes set.NodeSet) (sum unit.Bytes) {
	for _, n := range r.Nodes {
		if nodes.Has(n.Node) {
			sum += n.Bytes
		}
	}
	return sum
}

// Total is all of a row.
func (r Row) Total() (sum unit.Bytes) {
	for _, n := range r.Nodes {
		sum += n.Bytes
	}
	return sum
}

// Elsewhere is what of a row a move from nodes (empty: from all others) to nodes has
// to do.
func (r Row) Elsewhere(from, to set.NodeSet) (sum unit.Bytes) {
	for _, n := range r.Nodes {
		if Elsewhere(n.Node, from, to) {
			sum += n.Bytes
		}
	}
	return sum
}

// Elsewhere says that a page on this node is to be moved.
func Elsewhere(node int, from, to set.NodeSet) bool {
	return !to.Has(node) && (from.IsEmpty() || from.Has(node))
}

// Total is all memory of the workload.
func (c Census) Total() (sum unit.Bytes) {
	for _, r := range c.Rows {
		sum += r.Total()
	}
	return sum
}

// Elsewhere is what a move has to do.
func (c Census) Elsewhere(from, to set.NodeSet) (sum unit.Bytes) {
	for _, r := range c.Rows {
		sum += r.Elsewhere(from, to)
	}
	return sum
}
