// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// room is the free memory of the target nodes.
type room struct {
	root unix.Root
	buf  unix.Buffer
	to   set.NodeSet
	free map[int]unit.Bytes // by node, an estimate from the beginning on
	// pool has the free huge pages of hugetlb, from the first request on. Beyond them
	// Linux may take one from its free memory (alloc_migrate_hugetlb_folio): it is tried,
	// and the refusal is the answer.
	pool map[slot]int
	none map[slot]int // pages in a row that had no room
	full map[slot]bool
}

// slot is room on a node for pages of a class.
type slot struct {
	class class
	node  int
}

// noRoomLimit is the number of pages in a row that a node may refuse before it counts as
// full. A node at its low watermark refuses some while kswapd frees memory.
const noRoomLimit = 64

func newRoom(root unix.Root, to set.NodeSet) *room {
	r := &room{root: root, to: to, free: map[int]unit.Bytes{}, pool: map[slot]int{}, none: map[slot]int{}, full: map[slot]bool{}}
	for node := range to.All() {
		r.free[node] = 0
		info, err := unix.Parsed(&r.buf, root.Path(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", node)), procfs.ParseNodeMeminfo)
		if err == nil {
			r.free[node] = info.Free.Or(0)
		}
	}
	return r
}

// choose returns the node with the most room for up to n pages, and for how many of them.
// It subtracts from the estimate, so that several nodes take turns.
func (r *room) choose(c class, n int, not set.NodeSet) (node, pages int, ok bool) {
	for at := range r.to.Minus(not).All() {
		s := slot{c, at}
		if r.full[s] {
			continue
		}
		if c.pool {
			r.free1(s)
		}
		if !ok || r.better(c, at, node) {
			node, ok = at, true
		}
	}
	if !ok {
		return 0, 0, false
	}
	if c.pool {
		n = min(n, max(1, r.pool[slot{c, node}])) // beyond the pool one by one
	}
	r.take(c, node, n)
	return node, n, true
}

func (r *room) better(c class, a, b int) bool {
	if c.pool {
		return r.pool[slot{c, a}] > r.pool[slot{c, b}]
	}
	return r.free[a] > r.free[b]
}

func (r *room) take(c class, node, n int) {
	if c.pool {
		r.pool[slot{c, node}] -= n
	} else {
		r.free[node] -= unit.Bytes(n) * unit.Bytes(c.size)
	}
}

// free1 is the number of free huge pages in a node's pool (hugepages-*kB/free_hugepages,
// since 2.6.27 by node); none where the file is missing.
func (r *room) free1(s slot) int {
	if n, known := r.pool[s]; known {
		return n
	}
	path := fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-%dkB/free_hugepages", s.node, s.class.size/1024)
	r.pool[s] = 0
	if data, err := r.buf.ReadFile(r.root.Path(path)); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && n > 0 {
			r.pool[s] = n
		}
	}
	return r.pool[s]
}

// refused counts pages that a node had no room for, and reports when that makes it full.
func (r *room) refused(c class, node, pages int) (full bool) {
	s := slot{c, node}
	r.none[s] += pages
	if r.none[s] < noRoomLimit && !c.pool || r.full[s] {
		return false
	}
	r.full[s] = true
	return true
}

func (r *room) accepted(c class, node int) { r.none[slot{c, node}] = 0 }

// why is the reason why pages of a class stay when no node has room for them.
func (r *room) why(c class) string {
	if c.pool {
		return noPool(r.to.String(), c)
	}
	return "ENOMEM"
}
