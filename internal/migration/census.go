// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"cmp"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Kind is the kind of a page, as far as moving it goes.
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
		File: "mapped files", Cache: "unmapped page cache",
	}[k]
}

// Census is a workload's memory by kind and node. A page that several of its processes
// map counts once where that can be seen (files and shared memory always; private
// memory that a fork left shared needs CAP_SYS_ADMIN).
type Census struct {
	Rows      []Row `json:"rows"` // in the order of Kinds, only of kinds that it has
	Processes int   `json:"process_count"`
	Unread    int   `json:"unread,omitempty"` // processes that could not be read: their memory is missing, all or in part
	Files     int   `json:"files"`            // whose pages are counted
	// Foreign is the part that processes outside of the workload map or hold open too,
	// and ForeignRows is that part of Rows.
	Foreign     unit.Opt[unit.Bytes] `json:"foreign_bytes"`
	ForeignRows []Row                `json:"foreign_rows,omitempty"`
	// Pools is Hugetlb by the size of its pages, ascending; ForeignPools is the part of
	// it that is Foreign. A page of one size has no room in the pool of another.
	Pools        []Pool     `json:"pools,omitempty"`
	ForeignPools []Pool     `json:"foreign_pools,omitempty"`
	Swapped      unit.Bytes `json:"swapped_bytes,omitempty"` // on no node
	// Problems is what could not be read, a sentence each; about a process first, if
	// there is one.
	Problems []string `json:"problems,omitempty"`
}

// Row is one kind.
type Row struct {
	Kind  Kind        `json:"kind"`
	Nodes []NodeBytes `json:"node_bytes"` // ascending, only nodes that have some
}

// NodeBytes is the part of a kind on one node.
type NodeBytes struct {
	Node  int        `json:"node"`
	Bytes unit.Bytes `json:"bytes"`
}

// Pool is huge pages of one size.
type Pool struct {
	PageSize unit.Bytes  `json:"page_bytes"`
	Nodes    []NodeBytes `json:"node_bytes"` // as Row's
}

// Add counts pages of a kind on a node; AddPool does so for Hugetlb.
func (c *Census) Add(k Kind, node int, b unit.Bytes) { c.Rows = addBytes(c.Rows, k, node, b) }

// AddForeign counts this much of it as Foreign.
func (c *Census) AddForeign(k Kind, node int, b unit.Bytes) {
	c.ForeignRows = addBytes(c.ForeignRows, k, node, b)
	c.Foreign = unit.Some(c.Foreign.Or(0) + b)
}

// AddPool counts huge pages of a size on a node.
func (c *Census) AddPool(size unit.Bytes, node int, b unit.Bytes) {
	c.Add(Hugetlb, node, b)
	c.Pools = addPool(c.Pools, size, node, b)
}

// AddForeignPool counts this much of a pool as Foreign.
func (c *Census) AddForeignPool(size unit.Bytes, node int, b unit.Bytes) {
	c.AddForeign(Hugetlb, node, b)
	c.ForeignPools = addPool(c.ForeignPools, size, node, b)
}

func addBytes(rows []Row, k Kind, node int, b unit.Bytes) []Row {
	if b == 0 {
		return rows
	}
	order := slices.Index(Kinds(), k)
	if order < 0 {
		panic("migration: no such kind: " + string(k))
	}
	at, found := slices.BinarySearchFunc(rows, order, func(r Row, order int) int { return slices.Index(Kinds(), r.Kind) - order })
	if !found {
		rows = slices.Insert(rows, at, Row{Kind: k})
	}
	rows[at].Nodes = addNode(rows[at].Nodes, node, b)
	return rows
}

func addPool(pools []Pool, size unit.Bytes, node int, b unit.Bytes) []Pool {
	if b == 0 {
		return pools
	}
	at, found := slices.BinarySearchFunc(pools, size, func(p Pool, size unit.Bytes) int { return cmp.Compare(p.PageSize, size) })
	if !found {
		pools = slices.Insert(pools, at, Pool{PageSize: size})
	}
	pools[at].Nodes = addNode(pools[at].Nodes, node, b)
	return pools
}

func addNode(nodes []NodeBytes, node int, b unit.Bytes) []NodeBytes {
	at, found := slices.BinarySearchFunc(nodes, node, func(n NodeBytes, node int) int { return n.Node - node })
	if !found {
		nodes = slices.Insert(nodes, at, NodeBytes{Node: node})
	}
	nodes[at].Bytes += b
	return nodes
}

// Own is the memory that no process outside of the workload uses: the task of a move
// that leaves the rest.
func (c Census) Own() Census {
	own := c
	own.Rows, own.ForeignRows, own.Pools, own.ForeignPools = nil, nil, nil, nil
	for _, r := range c.Rows {
		foreign, _ := rowOf(c.ForeignRows, r.Kind)
		if r.Nodes = minus(r.Nodes, foreign.Nodes); len(r.Nodes) > 0 {
			own.Rows = append(own.Rows, r)
		}
	}
	for _, p := range c.Pools {
		if i := slices.IndexFunc(c.ForeignPools, func(f Pool) bool { return f.PageSize == p.PageSize }); i >= 0 {
			p.Nodes = minus(p.Nodes, c.ForeignPools[i].Nodes)
		}
		if len(p.Nodes) > 0 {
			own.Pools = append(own.Pools, p)
		}
	}
	own.Foreign = unit.OptOf(unit.Bytes(0), c.Foreign.Known())
	return own
}

func minus(nodes, less []NodeBytes) (left []NodeBytes) {
	for _, n := range nodes {
		n.Bytes -= Row{Nodes: less}.On(set.FromNodes(max(0, n.Node)))
		if n.Bytes > 0 {
			left = append(left, n)
		}
	}
	return left
}

// Elsewhere is the part of a pool that a move has to move.
func (p Pool) Elsewhere(from, to set.NodeSet) unit.Bytes {
	return Row{Nodes: p.Nodes}.Elsewhere(from, to)
}

// Of is the row of a kind; false when there is none of it.
func (c Census) Of(k Kind) (Row, bool) { return rowOf(c.Rows, k) }

func rowOf(rows []Row, k Kind) (Row, bool) {
	for _, r := range rows {
		if r.Kind == k {
			return r, true
		}
	}
	return Row{}, false
}

// On is the part of a row on these nodes.
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

// Elsewhere is the part of a row that a move to nodes has to move, from nodes (empty:
// from all others).
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

// Elsewhere is the memory that a move has to move.
func (c Census) Elsewhere(from, to set.NodeSet) (sum unit.Bytes) {
	for _, r := range c.Rows {
		sum += r.Elsewhere(from, to)
	}
	return sum
}
