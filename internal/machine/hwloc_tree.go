// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"
	"strconv"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// hwlocItem is an object on its way into hwloc's tree.
type hwlocItem struct {
	kind     string
	rank     int // among objects with the same CPUs, the outer one has the lower
	attrs    [][2]string
	cpus     set.CPUSet
	offline  set.CPUSet // in complete_cpuset beside cpus
	nodes    []int      // indexes into Machine.Nodes: the memory attached here, first the one with CPUs
	nodeset  set.NodeSet
	devices  []Device
	dax      []DAX
	children []*hwlocItem
}

// The nesting that hwloc uses for objects with the same CPUs.
const (
	rankMachine = iota
	rankPackage
	rankDie
	rankGroup
	rankCache // level 9 first, of a level instructions last
	rankCore  = rankCache + 2*maxCacheIndex + 2
	rankPU    = rankCore + 1
)

// hwlocTree nests a machine's objects.
//
//  1. Objects that cross another one (each has CPUs that the other lacks) cannot be
//     nested. Nodes are kept first, then packages, LLCs, L2s, cores, dies. An object that
//     crosses one kept before is returned as left out.
//  2. A node's memory hangs from the outermost object with exactly its CPUs; where there
//     is none, a Group is made, as hwloc does.
//  3. A node without CPUs hangs near its neighbours (see neighbours), or else from the
//     machine.
func hwlocTree(m Machine) (root *hwlocItem, left []string) {
	online := m.OnlineCPUs()
	root = &hwlocItem{kind: "Machine", cpus: online, attrs: [][2]string{{"os_index", "0"}}}
	for _, c := range m.CPUs {
		if !c.Online {
			root.offline = root.offline.With(c.ID)
		}
	}
	near := make([]set.CPUSet, len(m.Nodes))
	items, left := nestable(m, near) // 1
	for i, n := range m.Nodes {
		near[i], _ = m.NearCPUs(n.ID) // 3
	}
	for _, cpus := range near { // 2
		same := func(o *hwlocItem) bool { return o.cpus == cpus }
		if !cpus.IsEmpty() && cpus != online && !slices.ContainsFunc(items, same) && !crossesAny(items, cpus) {
			items = append(items, &hwlocItem{kind: "Group", rank: rankGroup, cpus: cpus, attrs: [][2]string{{"kind", "1001"}, {"subkind", "0"}}})
		}
	}
	for id := range online.All() {
		items = append(items, &hwlocItem{kind: "PU", rank: rankPU, cpus: set.FromCPUs(id), attrs: osIndex(id)})
	}
	root.nest(items)
	root.attach(m, near)
	return root, left
}

func osIndex(id int) [][2]string { return [][2]string{{"os_index", strconv.Itoa(id)}} }

// nestable makes the items of the machine's groups that cross neither each other
// nor a node.
func nestable(m Machine, near []set.CPUSet) (items []*hwlocItem, left []string) {
	var kept []*hwlocItem // the nodes are only here to be crossed
	for _, n := range m.Nodes {
		kept = append(kept, &hwlocItem{cpus: n.CPUs})
	}
	nodes := len(kept)
	seen := map[set.CPUSet]bool{}
	add := func(o *hwlocItem) {
		if !seen[o.cpus] && crossesAny(kept, o.cpus) {
			left = append(left, o.kind+" "+o.cpus.String())
			return
		}
		seen[o.cpus] = true
		kept = append(kept, o)
	}
	for i, cpus := range m.Packages {
		add(&hwlocItem{kind: "Package", rank: rankPackage, cpus: cpus, attrs: osIndex(i)})
	}
	for _, c := range m.LLCs {
		if c.Level != 2 {
			add(cacheItem(c))
		}
	}
	for _, c := range slices.Concat(m.L2s, m.Inner) {
		add(cacheItem(c))
	}
	for i, cpus := range m.Cores {
		add(&hwlocItem{kind: "Core", rank: rankCore, cpus: cpus, attrs: osIndex(i)})
	}
	for i, cpus := range m.Dies {
		if !slices.Contains(m.Packages, cpus) { // hwloc merges such a die
			add(&hwlocItem{kind: "Die", rank: rankDie, cpus: cpus, attrs: osIndex(i)})
		}
	}
	return kept[nodes:], left
}

func cacheItem(c Cache) *hwlocItem {
	o := &hwlocItem{kind: "L" + strconv.Itoa(c.Level) + "Cache", rank: rankCache + 2*(maxCacheIndex-c.Level), cpus: c.CPUs}
	kind := "0"
	switch {
	case c.Instr:
		o.kind, kind = "L"+strconv.Itoa(c.Level)+"iCache", "2"
		o.rank++
	case c.Level == 1:
		kind = "1"
	}
	if id, ok := c.ID.Get(); ok {
		o.attrs = osIndex(id)
	}
	o.attrs = append(o.attrs, [2]string{"cache_size", strconv.FormatInt(int64(c.Size.Or(0)), 10)},
		[2]string{"depth", strconv.Itoa(c.Level)}, [2]string{"cache_linesize", "0"},
		[2]string{"cache_associativity", "0"}, [2]string{"cache_type", kind})
	return o
}

func crossesAny(items []*hwlocItem, cpus set.CPUSet) bool {
	return slices.ContainsFunc(items, func(o *hwlocItem) bool {
		return o.cpus != cpus && o.cpus.Overlaps(cpus) && !o.cpus.SubsetOf(cpus) && !cpus.SubsetOf(o.cpus)
	})
}

// nest puts every item below the smallest one that holds it.
func (o *hwlocItem) nest(items []*hwlocItem) {
	size := func(i *hwlocItem) int { return i.cpus.Len() }
	slices.SortStableFunc(items, func(a, b *hwlocItem) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.rank, b.rank), cmp.Compare(lowest(a.cpus), lowest(b.cpus)))
	})
	owner := map[int]*hwlocItem{} // by CPU, the innermost so far
	for _, i := range items {
		cpu, ok := i.cpus.First()
		if !ok {
			continue
		}
		parent := o
		if p := owner[cpu]; p != nil {
			parent = p
		}
		parent.children = append(parent.children, i)
		for id := range i.cpus.All() {
			owner[id] = i
		}
	}
}

// sort orders children as hwloc wants them: by the lowest CPU, offline ones too.
func (o *hwlocItem) sort() {
	first := func(o *hwlocItem) int { return lowest(o.cpus.Union(o.offline)) }
	slices.SortStableFunc(o.children, func(a, b *hwlocItem) int { return cmp.Compare(first(a), first(b)) })
	for _, c := range o.children {
		c.sort()
	}
}

// at returns the outermost item with these CPUs, else nil.
func (o *hwlocItem) at(cpus set.CPUSet) *hwlocItem {
	if o.cpus == cpus {
		return o
	}
	for _, c := range o.children {
		if cpus.SubsetOf(c.cpus) {
			return c.at(cpus)
		}
	}
	return nil
}

// around is like at, but settles for the smallest item that holds the CPUs.
func (o *hwlocItem) around(cpus set.CPUSet) *hwlocItem {
	if cpus.IsEmpty() || o.cpus == cpus {
		return o
	}
	for _, c := range o.children {
		if cpus.SubsetOf(c.cpus) {
			return c.around(cpus)
		}
	}
	return o
}

// attach hangs memory and devices into the tree.
func (o *hwlocItem) attach(m Machine, near []set.CPUSet) {
	for _, withCPUs := range []bool{true, false} {
		for i, n := range m.Nodes {
			if n.CPUs.IsEmpty() == withCPUs {
				continue
			}
			place := o
			if !near[i].IsEmpty() {
				if p := o.at(near[i]); p != nil {
					place = p
				}
			}
			place.nodes = append(place.nodes, i)
			for _, c := range m.CPUs {
				if !c.Online && c.Node == unit.Some(n.ID) && withCPUs {
					place.offline = place.offline.With(c.ID)
				}
			}
		}
	}
	for _, d := range m.Devices {
		cpus := d.CPUs
		if id, ok := d.Node.Get(); ok {
			if n, _ := m.Node(id); !n.CPUs.IsEmpty() {
				cpus = n.CPUs
			}
		}
		place := o.around(cpus)
		place.devices = append(place.devices, d)
	}
	for _, d := range m.DAX {
		n, _ := m.Node(d.Node.Or(-1))
		place := o.around(n.CPUs)
		place.dax = append(place.dax, d)
	}
	o.spread(m, set.NodeSet{})
	o.sort()
}

// spread gives every object the nodes at it, below it and above it, and its
// children's offline CPUs.
func (o *hwlocItem) spread(m Machine, above set.NodeSet) (set.NodeSet, set.CPUSet) {
	for _, i := range o.nodes {
		above = above.With(m.Nodes[i].ID)
	}
	o.nodeset = above
	for _, c := range o.children {
		nodes, offline := c.spread(m, above)
		o.nodeset, o.offline = o.nodeset.Union(nodes), o.offline.Union(offline)
	}
	return o.nodeset, o.offline
}
