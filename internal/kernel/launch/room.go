// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Room is the memory that a node has left.
type Room struct {
	Node  int                  `json:"node"`
	Total unit.Opt[unit.Bytes] `json:"total_bytes"`
	Free  unit.Opt[unit.Bytes] `json:"free_bytes"`
	// Cache is page cache that the kernel can give up for a program: FilePages without
	// Shmem and without Dirty.
	Cache unit.Opt[unit.Bytes] `json:"cache_bytes"`
}

// Usable is Free and Cache together.
func (r Room) Usable() (unit.Bytes, bool) {
	free, ok := r.Free.Get()
	return free + r.Cache.Or(0), ok
}

// ReadRoom reads nodeN/meminfo of each node.
func ReadRoom(root unix.Root, nodes set.NodeSet) ([]Room, error) {
	var rooms []Room
	var buf unix.Buffer
	for id := range nodes.All() {
		file := fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", id)
		data, err := buf.ReadFile(root.Path(file))
		if err != nil {
			return nil, unix.Explain("read", file, "", err)
		}
		m, err := procfs.ParseNodeMeminfo(data)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		r := Room{Node: id, Total: m.Total, Free: m.Free}
		pages, ok := m.File.Get()
		r.Cache = unit.OptOf(max(0, pages-m.Shmem.Or(0)-m.Dirty.Or(0)), ok)
		rooms = append(rooms, r)
	}
	return rooms, nil
}

// fullBelow and fullBelowShare: a node with less free than this has nothing for a
// program. The kernel keeps about as much for itself (min_free_kbytes), and a program
// of any size takes more to start.
const (
	fullBelow      = 64 * unit.MiB
	fullBelowShare = 100 // 1/100 of the node
)

// Warnings are sentences about nodes with hardly any room. They look at Free alone:
// page cache is given up only as the program grows, and that takes time.
func Warnings(p Placement, rooms []Room) (out []string) {
	for _, r := range rooms {
		free, ok := r.Free.Get()
		if !ok || p.Policy == Local || (free >= fullBelow && free*fullBelowShare >= r.Total.Or(0)) {
			continue
		}
		then := "what does not fit goes elsewhere"
		if p.Policy == Bind {
			then = "a program that needs more is killed"
		}
		out = append(out, fmt.Sprintf("node %d has %v free, and %s of page cache that could go: %s", r.Node, free, r.Cache, then))
	}
	return out
}

// Allowed refuses a program that the memory cgroups of this process would kill: its
// memory is charged to them, under any policy.
func Allowed(limit unit.Opt[cgroup.MemoryRoom], needs unit.Bytes) error {
	r, limited := limit.Get()
	if !limited || needs <= r.Left() {
		return nil
	}
	return fmt.Errorf("place %v: %v are missing: %v", needs, needs-r.Left(), r)
}

// Fits refuses a program that needs more than its nodes have. With interleave, each
// node takes the same part; with preferred, the one node takes all of it, and with the
// other policies the nodes take it together.
func Fits(p Placement, rooms []Room, needs unit.Bytes) error {
	var sum unit.Bytes
	var each []string
	for _, r := range rooms {
		usable, ok := r.Usable()
		if !ok {
			return fmt.Errorf("check for %v: the free memory of node %d is unknown", needs, r.Node)
		}
		sum += usable
		each = append(each, fmt.Sprintf("node %d has room for %v (%v free, %s of page cache)", r.Node, usable, r.Free.Or(0), r.Cache))
	}
	var missing unit.Bytes
	switch n := unit.Bytes(len(rooms)); {
	case n == 0:
		return nil
	case p.Policy == Interleave:
		for _, r := range rooms {
			usable, _ := r.Usable()
			missing += max(0, (needs+n-1)/n-usable)
		}
	default:
		missing = needs - sum
	}
	if missing <= 0 {
		return nil
	}
	return fmt.Errorf("place %v by %s: %v are missing: %s", needs, policyText(p), missing, strings.Join(each, ", "))
}

// policyText is "bind on node 1".
func policyText(p Placement) string {
	if p.Nodes.IsEmpty() {
		return string(p.Policy)
	}
	return string(p.Policy) + " on " + nodesText(p.Nodes)
}
