// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// distances takes the first matrix of the kernel's between nodes.
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
		if !x.isSLIT(doc) {
			continue
		}
		objects, err := doc.objectsOf(x)
		if err == nil {
			err = m.fillDistances(x, objects)
		}
		return err
	}
	return nil
}

// isSLIT: the kernel's latencies between nodes. Before 2.1 hwloc gave them no name; its kind
// has 1 for "from the operating system". In hwloc 1 a matrix of as many objects as there
// are nodes is one.
func (x hwlocMatrix) isSLIT(doc *hwlocDocument) bool {
	if x.parent != nil {
		return x.attrs["nbobjs"] == strconv.Itoa(len(nodesBelow(x.parent)))
	}
	if x.hetero || x.attrs["type"] != "NUMANode" {
		return false
	}
	kind, _ := strconv.Atoi(x.attrs["kind"])
	return x.attrs["name"] == "NUMALatency" || x.attrs["name"] == "" && kind&5 == 5
}

// objectsOf are those that a matrix is about; its numbers are as many as they need.
func (doc *hwlocDocument) objectsOf(x hwlocMatrix) ([]*hwlocObject, error) {
	var objects []*hwlocObject
	if x.parent != nil {
		objects = nodesBelow(x.parent)
	}
	for _, index := range x.indexes {
		o := doc.object(x, index)
		if o == nil {
			return nil, fmt.Errorf("line %d: distances of an object %s that is not there", x.line, clip(index))
		}
		objects = append(objects, o)
	}
	n := len(objects)
	if x.attrs["nbobjs"] != strconv.Itoa(n) || len(x.values) != n*n {
		return nil, fmt.Errorf("line %d: %d distances between %d objects: want %s objects and the square of it", x.line, len(x.values), n, clip(x.attrs["nbobjs"]))
	}
	return objects, nil
}

// object finds what an index means: "3", or "OSDev:31" in a matrix of several types.
func (doc *hwlocDocument) object(x hwlocMatrix, index string) *hwlocObject {
	kind := x.attrs["type"]
	gp := x.attrs["indexing"] == "gp"
	if x.hetero {
		kind, index, gp = splitIndex(index)
	}
	if o := doc.byGP[index]; gp && o != nil && o.kind == kind {
		return o
	}
	if gp {
		return nil
	}
	if kind == "NUMANode" {
		return doc.nodeByOS[index]
	}
	return doc.byOS(kind)[index]
}

func splitIndex(index string) (kind, gp string, ok bool) {
	kind, gp, _ = strings.Cut(index, ":")
	return kind, gp, true
}

// byOS are the objects of a kind by os_index. Matrices are few.
func (doc *hwlocDocument) byOS(kind string) map[string]*hwlocObject {
	if doc.osIndexes == nil {
		doc.osIndexes = map[string]map[string]*hwlocObject{}
	}
	if doc.osIndexes[kind] == nil {
		all := map[string]*hwlocObject{}
		for _, o := range doc.each(kind) {
			all[o.attrs["os_index"]] = o
		}
		doc.osIndexes[kind] = all
	}
	return doc.osIndexes[kind]
}

// fillDistances refuses what no SLIT has. Some firmware has 0 on the diagonal, which
// Distance reads as 10.
func (m *Machine) fillDistances(x hwlocMatrix, objects []*hwlocObject) error {
	scale := 1.0
	if x.parent != nil { // hwloc 1 has them divided by the smallest
		base, err := strconv.ParseFloat(x.attrs["latency_base"], 64)
		if err != nil {
			return fmt.Errorf("line %d: latency_base %s: want a number", x.line, clip(x.attrs["latency_base"]))
		}
		scale = base
	}
	for k, text := range x.values {
		from, err1 := objects[k/len(objects)].osIndex(set.MaxNode)
		to, err2 := objects[k%len(objects)].osIndex(set.MaxNode)
		i, ok1 := m.nodeIndex(from)
		j, ok2 := m.nodeIndex(to)
		v, err := strconv.ParseFloat(text, 64)
		d := math.Round(v * scale)
		least := 0.0
		if from != to {
			least = LocalDistance
		}
		if err != nil || err1 != nil || err2 != nil || !ok1 || !ok2 || !(d >= least && d <= maxDistance) {
			return fmt.Errorf("line %d: distance %s from node %d to node %d: want %d to %d", x.line, clip(text), from, to, LocalDistance, maxDistance)
		}
		if d >= LocalDistance {
			m.Distances[i][j] = unit.Some(int(d))
		}
	}
	return nil
}

// links keeps the other matrices: between GPUs, or what a user added.
func (doc *hwlocDocument) links(m *Machine) error {
	for _, x := range doc.matrices {
		if x.isSLIT(doc) || x.parent != nil {
			continue
		}
		objects, err := doc.objectsOf(x)
		if err != nil {
			return err
		}
		l := Links{Name: x.attrs["name"]}
		for i, o := range objects {
			l.Devices = append(l.Devices, o.label())
			row := make([]unit.Opt[int], len(objects))
			for j := range row {
				text := x.values[i*len(objects)+j]
				v, err := strconv.ParseInt(text, 10, 64)
				if err != nil || v < 0 {
					return fmt.Errorf("line %d: %s from %s to %s: want a number", x.line, clip(text), l.Devices[i], objects[j].label())
				}
				row[j] = unit.Some(int(v))
			}
			l.Values = append(l.Values, row)
		}
		m.Links = append(m.Links, l)
	}
	return nil
}

// label is the kernel's name of a device, else the type and number.
func (o *hwlocObject) label() string {
	switch {
	case o.attrs["name"] != "":
		return o.attrs["name"]
	case o.attrs["pci_busid"] != "":
		return o.attrs["pci_busid"]
	}
	return o.kind + " " + o.attrs["os_index"]
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

// kindsOf reads the kinds of CPUs; one kind for all says nothing.
func (doc *hwlocDocument) kindsOf(m *Machine) error {
	for _, k := range doc.kinds {
		cpus, err := parseHwlocMask(k.cpuset)
		if err != nil {
			return fmt.Errorf("line %d: cpuset: %w", k.line, err)
		}
		kind := CPUKind{Name: k.infos["CoreType"], CPUs: cpus.Intersect(m.OnlineCPUs())}
		if name, ok := strings.CutPrefix(kind.Name, "Intel"); ok {
			kind.Name = strings.ToLower(name)
		}
		capacity, err := strconv.Atoi(k.infos["LinuxCapacity"])
		kind.Capacity = unit.OptOf(capacity, err == nil && capacity >= 0)
		if !kind.CPUs.IsEmpty() {
			m.Kinds = append(m.Kinds, kind)
		}
	}
	if len(m.Kinds) == 1 {
		m.Kinds = nil
	}
	sortKinds(m.Kinds)
	return nil
}
