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
		doc.cpus, doc.nodes, doc.groups, doc.caches, doc.distances, doc.access, doc.devices,
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
		m.Nodes = append(m.Nodes, n)
	}
	if len(objects) == 0 { // hwloc 1 has no node where the kernel has no NUMA
		memory, err := doc.root.number("local_memory", math.MaxInt64)
		if err != nil {
			return err
		}
		m.PageSize = doc.root.pageSize
		m.Nodes = []Node{{ID: 0, Memory: bytesOf(memory)}}
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
	return nil
}

func (o *hwlocObject) node(m *Machine) (Node, error) {
	id, err := o.osIndex(set.MaxNode)
	if err != nil {
		return Node{}, err
	}
	memory, err := o.number("local_memory", math.MaxInt64)
	if err != nil {
		return Node{}, err
	}
	if !m.PageSize.Known() {
		m.PageSize = o.pageSize
	}
	n := Node{ID: id, Memory: bytesOf(memory)}
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
	levels := map[int]*cacheGroups{}
	for _, o := range doc.all {
		level, ok := o.cacheLevel()
		cpu, some := o.cpus.Intersect(online).First()
		if !ok || level < 2 || !some || levels[level] != nil && levels[level].has(cpu) {
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
		if levels[level] == nil {
			levels[level] = &cacheGroups{}
		}
		n, known := id.Get()
		levels[level].addCache(online, cpu, Cache{Level: level, ID: unit.OptOf(int(n), known), CPUs: o.cpus, Size: positive(size)})
	}
	m.setCaches(levels)
	return nil
}

// cacheLevel knows "L3Cache", and hwloc 1's "Cache" of depth 3; no instruction caches.
func (o *hwlocObject) cacheLevel() (int, bool) {
	digits, ok := strings.CutSuffix(o.kind, "Cache")
	digits = strings.TrimPrefix(digits, "L")
	if digits == "" {
		digits = o.attrs["depth"]
	}
	if !ok || len(digits) != 1 || !isDigits(digits) || o.attrs["cache_type"] == "2" {
		return 0, false
	}
	return int(digits[0] - '0'), true
}

// distances takes the first matrix of the kernel's between all nodes.
func (doc *hwlocDocument) distances(m *Machine) error {
	n := len(m.Nodes)
	m.Distances = make([][]unit.Opt[int], n)
	for i := range m.Distances {
		m.Distances[i] = make([]unit.Opt[int], n)
	}
	if n == 1 {
		m.Distances[0][0] = unit.Some(LocalDistance)
	}
	for _, x := range doc.matrices {
		ids, values, ok := doc.slit(x)
		if ok && len(ids) == n && len(values) == n*n {
			return m.fillDistances(x, ids, values)
		}
	}
	return nil
}

func (m *Machine) fillDistances(x hwlocMatrix, ids, values []int) error {
	for k, d := range values {
		i, ok1 := m.nodeIndex(ids[k/len(ids)])
		j, ok2 := m.nodeIndex(ids[k%len(ids)])
		if !ok1 || !ok2 {
			return fmt.Errorf("line %d: distances between nodes that are not there", x.line)
		}
		if d >= LocalDistance && d <= maxDistance {
			m.Distances[i][j] = unit.Some(d)
		}
	}
	return nil
}

// slit returns the node ids and values of a matrix of SLIT distances. hwloc 1 has
// them divided by the smallest, for the nodes below an object in document order.
func (doc *hwlocDocument) slit(x hwlocMatrix) (ids, values []int, ok bool) {
	scale := 1.0
	var objects []*hwlocObject
	if x.parent != nil {
		objects = nodesBelow(x.parent)
		scale, _ = strconv.ParseFloat(x.attrs["latency_base"], 64)
	} else {
		if x.attrs["type"] != "NUMANode" || x.attrs["name"] != "NUMALatency" && x.attrs["name"] != "" {
			return nil, nil, false
		}
		for _, index := range x.indexes {
			objects = append(objects, doc.find(index, x.attrs["indexing"]))
		}
	}
	for _, o := range objects {
		if o == nil {
			return nil, nil, false
		}
		id, err := o.osIndex(set.MaxNode)
		if err != nil {
			return nil, nil, false
		}
		ids = append(ids, id)
	}
	for _, text := range x.values {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !(v*scale >= 0 && v*scale <= math.MaxInt32) {
			return nil, nil, false
		}
		values = append(values, int(math.Round(v*scale)))
	}
	return ids, values, len(ids) > 0
}

func nodesBelow(o *hwlocObject) []*hwlocObject {
	var out []*hwlocObject
	for _, c := range o.children {
		if c.kind == "NUMANode" {
			out = append(out, c)
		}
		out = append(out, nodesBelow(c)...)
	}
	return out
}

// find returns the node that a matrix or an attribute means.
func (doc *hwlocDocument) find(index, indexing string) *hwlocObject {
	name := "os_index"
	if indexing == "gp" {
		name = "gp_index"
	}
	for _, o := range doc.all {
		if o.kind == "NUMANode" && o.attrs[name] == index {
			return o
		}
	}
	return nil
}
