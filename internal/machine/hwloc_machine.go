// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// cpulessInfo marks a node without CPUs in what WriteHwloc writes.
const cpulessInfo = "HomenodeCPUless"

// ParseHwloc reads a machine from hwloc's XML: version 2 or 3 ("lstopo x.xml"),
// and version 1 as far as its objects mean the same. Any error names the line and
// comes with the zero Machine.
//
//  1. PUs are the online CPUs. A CPU that only the root's complete_cpuset has is offline,
//     or was not allowed to the process that wrote the document: hwloc does not say
//     which.
//  2. hwloc gives a node without CPUs the cpuset of its neighbours. So a CPU belongs to
//     the node with the smallest cpuset that has it; among equals, to the first, for
//     hwloc lists the one with CPUs first.
//  3. A device's node is the one whose CPUs are those of the object it hangs from, if
//     exactly one of several nodes has them.
//  4. Nothing is dropped because it makes no sense: a matrix that lacks numbers, or has
//     some that no SLIT has, is an error.
//
// Not in such a document: dies that equal a package, memory tiers, classes of
// initiators (all of it is called class 1, what hwloc reads), cache ids of
// hwloc 1, a distance that is unknown.
func ParseHwloc(data []byte, origin string) (Machine, error) {
	doc, err := readHwloc(data)
	if err != nil {
		return Machine{}, fmt.Errorf("parse hwloc XML: %w: %w", ErrMalformed, err)
	}
	m := Machine{Origin: origin}
	for _, step := range []func(*Machine) error{
		doc.cpus, doc.nodes, doc.groups, doc.caches, doc.kindsOf, doc.distances, doc.links, doc.access, doc.devices, doc.dax,
	} {
		if err := step(&m); err != nil {
			return Machine{}, fmt.Errorf("parse hwloc XML: %w: %w", ErrMalformed, err)
		}
	}
	return m, nil
}

// each yields the objects of these types, in document order.
func (doc *hwlocDocument) each(kinds ...string) []*hwlocObject {
	var out []*hwlocObject
	for _, o := range doc.all {
		if slices.Contains(kinds, o.kind) {
			out = append(out, o)
		}
	}
	return out
}

// number reads a decimal attribute; unknown when it is missing.
func (o *hwlocObject) number(name string, most int64) (unit.Opt[int64], error) {
	text, ok := o.attrs[name]
	if !ok {
		return unit.None[int64](), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return unit.None[int64](), fmt.Errorf("line %d: %s %s of %s: want a number up to %d", o.line, name, clip(text), clip(o.kind), most)
	}
	return unit.Some(n), nil
}

// osIndex is the kernel's number of an object that must have one.
func (o *hwlocObject) osIndex(most int) (int, error) {
	n, err := o.number("os_index", int64(most))
	if err == nil && !n.Known() {
		err = fmt.Errorf("line %d: %s without os_index", o.line, o.kind)
	}
	return int(n.Or(0)), err
}

func (doc *hwlocDocument) cpus(m *Machine) error { // 1
	var online set.CPUSet
	for _, o := range doc.each("PU") {
		id, err := o.osIndex(set.MaxCPU)
		if err != nil {
			return err
		}
		if online.Has(id) {
			return fmt.Errorf("line %d: a second PU %d", o.line, id)
		}
		online = online.With(id)
	}
	if online.IsEmpty() {
		return fmt.Errorf("line %d: a topology without a PU", doc.root.line)
	}
	for id := range doc.root.complete.Union(online).All() {
		m.CPUs = append(m.CPUs, CPU{ID: id, Online: online.Has(id)})
	}
	return nil
}

func (doc *hwlocDocument) nodes(m *Machine) error {
	objects := doc.each("NUMANode")
	for _, o := range objects {
		n, err := o.node(m)
		if err != nil {
			return err
		}
		if doc.nodeByOS[o.attrs["os_index"]] != o {
			return fmt.Errorf("line %d: a second node %d", o.line, n.ID)
		}
		m.Nodes = append(m.Nodes, n)
	}
	if len(objects) == 0 { // hwloc 1 has no node where the kernel has no NUMA
		memory, err := doc.root.number("local_memory", int64(MaxMemory))
		if err != nil {
			return err
		}
		base, huge := doc.root.pageSize()
		m.PageSize = base
		m.Nodes = []Node{{ID: 0, Memory: bytesOf(memory), HugePages: huge}}
		objects = []*hwlocObject{doc.root}
	}
	doc.assign(m, objects)
	slices.SortFunc(m.Nodes, func(a, b Node) int { return cmp.Compare(a.ID, b.ID) })
	for i := range m.Nodes[1:] {
		if m.Nodes[i].ID == m.Nodes[i+1].ID {
			return fmt.Errorf("line %d: a second node %d", doc.root.line, m.Nodes[i].ID)
		}
	}
	m.nodeCPUs()
	doc.near(m)
	return nil
}

// near fills in which CPUs are next to a node without any: hwloc gives it their cpuset,
// and all CPUs where it knows nothing.
func (doc *hwlocDocument) near(m *Machine) {
	online := m.OnlineCPUs()
	for i := range m.Nodes {
		n := &m.Nodes[i]
		o := doc.nodeByOS[strconv.Itoa(n.ID)]
		if o == nil || !n.CPUs.IsEmpty() {
			continue
		}
		if near := o.cpus.Intersect(online); near != online {
			n.Near = near
		}
	}
}

func (o *hwlocObject) node(m *Machine) (Node, error) {
	id, err := o.osIndex(set.MaxNode)
	if err != nil {
		return Node{}, err
	}
	memory, err := o.number("local_memory", int64(MaxMemory))
	if err != nil {
		return Node{}, err
	}
	base, huge := o.pageSize()
	if !m.PageSize.Known() {
		m.PageSize = base
	}
	n := Node{ID: id, Memory: bytesOf(memory), HugePages: huge}
	for p := o.parent; p != nil && p.kind == "MemCache"; p = p.parent {
		c, err := p.sideCache()
		if err != nil {
			return Node{}, err
		}
		n.SideCaches = append(n.SideCaches, c)
	}
	return n, nil
}

func (o *hwlocObject) sideCache() (SideCache, error) {
	level, err1 := o.number("depth", maxCacheIndex)
	size, err2 := o.number("cache_size", math.MaxInt64)
	line, err3 := o.number("cache_linesize", math.MaxInt64)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return SideCache{}, err
		}
	}
	return SideCache{Level: int(level.Or(1)), Size: positive(size), Line: positive(line)}, nil
}

func bytesOf(n unit.Opt[int64]) unit.Opt[unit.Bytes] {
	v, ok := n.Get()
	return unit.OptOf(unit.Bytes(v), ok)
}

// positive: hwloc prints 0 for a size it does not know.
func positive(n unit.Opt[int64]) unit.Opt[unit.Bytes] {
	v, ok := n.Get()
	return unit.OptOf(unit.Bytes(v), ok && v > 0)
}

// assign gives every CPU its node (2); objects[i] is m.Nodes[i].
func (doc *hwlocDocument) assign(m *Machine, objects []*hwlocObject) {
	best := map[int]int{} // by CPU, the size of the set that it got its node from
	for i, o := range objects {
		if o.infos[cpulessInfo] != "" {
			continue
		}
		size := o.complete.Len()
		for k := range m.CPUs {
			c := &m.CPUs[k]
			if had, ok := best[c.ID]; o.complete.Has(c.ID) && (!ok || size < had) {
				best[c.ID] = size
				c.Node = unit.Some(m.Nodes[i].ID)
			}
		}
	}
}

// groups fills in packages, dies and cores.
func (doc *hwlocDocument) groups(m *Machine) error {
	online := m.OnlineCPUs()
	sorted := func(kinds ...string) *groups {
		g := &groups{}
		objects := doc.each(kinds...)
		slices.SortStableFunc(objects, func(a, b *hwlocObject) int { return cmp.Compare(lowest(a.cpus), lowest(b.cpus)) })
		for _, o := range objects {
			if cpu, ok := o.cpus.Intersect(online).First(); ok && !g.has(cpu) {
				g.add(online, cpu, unit.Some(o.cpus))
			}
		}
		return g
	}
	packages, dies, cores := sorted("Package", "Socket"), sorted("Die"), sorted("Core")
	for i := range m.CPUs {
		c := &m.CPUs[i]
		c.Package, c.Die, c.Core = packages.of(c.ID), dies.of(c.ID), cores.of(c.ID)
	}
	m.Packages, m.Dies, m.Cores = packages.sets, dies.sets, cores.sets
	return nil
}

// caches fills in L2s and LLCs from the data and unified caches.
func (doc *hwlocDocument) caches(m *Machine) error {
	online := m.OnlineCPUs()
	levels := map[cacheKind]*cacheGroups{}
	for _, o := range doc.all {
		kind, ok := o.cacheKind()
		cpu, some := o.cpus.Intersect(online).First()
		if !ok || !some || kind.instr && kind.level > 1 || levels[kind] != nil && levels[kind].has(cpu) {
			continue
		}
		size, err := o.number("cache_size", math.MaxInt64)
		if err != nil {
			return err
		}
		id, err := o.number("os_index", math.MaxInt32)
		if err != nil {
			return err
		}
		if levels[kind] == nil {
			levels[kind] = &cacheGroups{}
		}
		n, known := id.Get()
		levels[kind].addCache(online, cpu, Cache{Level: kind.level, Instr: kind.instr, ID: unit.OptOf(int(n), known && kind.level > 1), CPUs: o.cpus, Size: positive(size)})
	}
	m.setCaches(levels)
	return nil
}

// cacheKind knows "L3Cache", "L1iCache", and hwloc 1's "Cache" of depth 3.
func (o *hwlocObject) cacheKind() (cacheKind, bool) {
	digits, ok := strings.CutSuffix(o.kind, "Cache")
	digits = strings.TrimSuffix(strings.TrimPrefix(digits, "L"), "i")
	if digits == "" {
		digits = o.attrs["depth"]
	}
	if !ok || len(digits) != 1 || digits < "1" || digits > "9" {
		return cacheKind{}, false
	}
	return cacheKind{int(digits[0] - '0'), o.attrs["cache_type"] == "2"}, true
}
