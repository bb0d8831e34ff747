// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"homenode/internal/set"
)

// Level is how near two nodes are to each other.
type Level int

// The levels; farther is more.
const (
	SameNode   Level = iota
	SameServer       // another node of its server
	Beyond           // a node of another server of the same coherent system
)

// String is "node", "server" or "beyond".
func (l Level) String() string { return [...]string{"node", "server", "beyond"}[l] }

// Levels are the servers of a machine: groups of nodes that are near each other. Most
// machines are one server.
type Levels struct {
	// Servers by their lowest node; every node is in one.
	Servers []set.NodeSet `json:"servers"`
	// Cut is the least distance between servers; 0: there is only one.
	Cut int `json:"cut,omitempty"`
}

// serverGap is the factor by which the distance jumps between servers. Inside one, SLITs
// climb by steps of up to 2 (10, 16, 32 and 33 on a Kunpeng; 40 and 80 where GPUs are
// nodes). From one server of a coherent system to the next it is 7 (22 and 160, Lakew et
// al. §4) or 3 and more (13 and 40 on SGI's UV). A lower value would split servers into
// packages.
const serverGap = 3

// noWay is the distance of nodes that cannot reach each other (ACPI 6.5, 5.2.17).
const noWay = 255

// Levels groups the nodes by the largest gap in their distances:
//
//  1. All distances between two nodes, ascending; of both directions the larger. An
//     unknown distance is left out.
//  2. The largest jump from one to the next, as a ratio; the first of equals. Below
//     serverGap: one server.
//  3. Nodes nearer than that jump belong to one server, and so do all that are connected
//     by such nodes.
//
// A node without any known distance belongs to the first server: one server is usual.
func (m Machine) Levels() Levels {
	distances := m.between() // 1
	cut, most := 0, 0.0
	for i := 1; i < len(distances); i++ { // 2
		jump := float64(distances[i]) / float64(max(1, distances[i-1]))
		if jump >= serverGap && jump > most {
			cut, most = distances[i], jump
		}
	}
	if cut == 0 {
		return Levels{Servers: []set.NodeSet{m.NodeIDs()}}
	}
	return m.cutAt(cut)
}

// between are the known distances of different nodes, each once.
func (m Machine) between() (all []int) {
	for _, a := range m.Nodes {
		for _, b := range m.Nodes {
			if d, ok := m.farther(a.ID, b.ID); ok && a.ID != b.ID && d < noWay {
				all = append(all, d)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// farther is the larger distance of both directions; false when neither is known.
func (m Machine) farther(a, b int) (int, bool) {
	there, ok := m.Distance(a, b).Get()
	back, ok2 := m.Distance(b, a).Get()
	return max(there, back), ok || ok2
}

// cutAt is number 3 of Levels.
func (m Machine) cutAt(cut int) Levels {
	l := Levels{Cut: cut}
	var left set.NodeSet // that nothing is known of
	for _, n := range m.Nodes {
		switch near, known := m.near(n.ID, cut); {
		case known:
			l.join(near)
		default:
			left = left.With(n.ID)
		}
	}
	if l.Servers[0] = l.Servers[0].Union(left); len(l.Servers) == 1 {
		l.Cut = 0 // they hang together over others
	}
	slices.SortFunc(l.Servers, func(a, b set.NodeSet) int {
		first, _ := a.First()
		second, _ := b.First()
		return first - second
	})
	return l
}

// near is a node and those nearer than cut; false when no distance of it is known.
func (m Machine) near(id, cut int) (near set.NodeSet, known bool) {
	near = near.With(id)
	for _, o := range m.Nodes {
		d, ok := m.farther(id, o.ID)
		if o.ID == id || !ok {
			continue
		}
		if known = true; d < cut {
			near = near.With(o.ID)
		}
	}
	return near, known
}

// join adds nodes of one server, which may tie others together.
func (l *Levels) join(near set.NodeSet) {
	l.Servers = slices.DeleteFunc(l.Servers, func(s set.NodeSet) bool {
		if s.Overlaps(near) {
			near = near.Union(s)
			return true
		}
		return false
	})
	l.Servers = append(l.Servers, near)
}

// Server is the index of a node's server; false when there is no such node.
func (l Levels) Server(id int) (int, bool) {
	i := slices.IndexFunc(l.Servers, func(s set.NodeSet) bool { return s.Has(id) })
	return i, i >= 0
}

// Between is how near two nodes are; a node that does not exist is beyond.
func (l Levels) Between(a, b int) Level {
	i, ok := l.Server(a)
	j, ok2 := l.Server(b)
	switch {
	case !ok || !ok2 || i != j:
		return Beyond
	case a != b:
		return SameServer
	}
	return SameNode
}

// Span is the level of nodes that are far from each other.
func (l Levels) Span(nodes set.NodeSet) Level {
	if nodes.Len() <= 1 {
		return SameNode
	}
	for _, s := range l.Servers {
		if nodes.SubsetOf(s) {
			return SameServer
		}
	}
	return Beyond
}
