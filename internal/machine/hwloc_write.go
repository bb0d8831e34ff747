// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// ErrNotNested means that hwloc's form cannot hold a part of a machine: groups that cross
// each other, a matrix with an unknown number. That is broken firmware.
var ErrNotNested = errors.New("it does not fit hwloc's tree")

// WriteHwloc writes a machine as hwloc's XML, version 2.0, which lstopo and every hwloc
// since 2.0 read. ParseHwloc reads back the nodes with their CPUs, memory, huge pages, side
// caches and distances, and CPUs and their kinds, packages, cores, caches, dax, devices with
// their bridges and the links between them; the document has nothing else of a Machine.
//
// ErrNotNested names what had to be left out; the document is complete otherwise. hwloc's
// matrices have no unknown number: with one, the whole matrix is left out.
func WriteHwloc(w io.Writer, m Machine) error {
	root, left := hwlocTree(m)
	p := &hwlocPrinter{w: bufio.NewWriter(w), m: m, gp: map[int]int{}, devices: map[string]string{}}
	p.line(0, `<?xml version="1.0" encoding="UTF-8"?>`)
	p.line(0, `<!DOCTYPE topology SYSTEM "hwloc2.dtd">`)
	p.line(0, `<topology version="2.0">`)
	p.object(1, root)
	left = append(left, p.distances()...)
	left = append(left, p.links()...)
	p.memattrs()
	p.kinds()
	p.line(0, `</topology>`)
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write hwloc XML: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("write hwloc XML: %w: left out %s", ErrNotNested, strings.Join(left, ", "))
	}
	return nil
}

type hwlocPrinter struct {
	w    *bufio.Writer
	m    Machine
	last int         // gp_index, hwloc's own number of an object
	gp   map[int]int // of node ids

	devices map[string]string // "OSDev:12" by name, "PCIDev:13" by address
}

func (p *hwlocPrinter) line(depth int, text string) {
	p.w.WriteString(strings.Repeat("  ", depth))
	p.w.WriteString(text)
	p.w.WriteByte('\n')
}

// open prints the start of an element; it must be closed unless it is empty.
func (p *hwlocPrinter) open(depth int, name string, empty bool, attrs ...[2]string) {
	var b strings.Builder
	b.WriteString("<" + name)
	for _, a := range attrs {
		b.WriteString(" " + a[0] + `="`)
		xml.EscapeText(&b, []byte(a[1])) // replaces what XML cannot hold
		b.WriteByte('"')
	}
	if empty {
		b.WriteByte('/')
	}
	b.WriteByte('>')
	p.line(depth, b.String())
}

func (p *hwlocPrinter) object(depth int, o *hwlocItem) {
	attrs := append([][2]string{{"type", o.kind}}, o.attrs...)
	attrs = append(attrs, p.sets(o.cpus, o.offline, o.nodeset, o.kind == "Machine")...)
	empty := len(o.nodes)+len(o.children)+len(o.devices)+len(o.dax) == 0
	p.open(depth, "object", empty, attrs...)
	if empty {
		return
	}
	for _, i := range o.nodes {
		p.memory(depth+1, p.m.Nodes[i], o)
	}
	for _, c := range o.children {
		p.object(depth+1, c)
	}
	p.hosts(depth+1, o.devices)
	for _, d := range o.dax {
		p.dax(depth+1, d)
	}
	p.line(depth, "</object>")
}

// sets are the attributes that every object but devices has.
func (p *hwlocPrinter) sets(cpus, offline set.CPUSet, nodes set.NodeSet, root bool) [][2]string {
	p.last++
	attrs := [][2]string{
		{"cpuset", hwlocMask(cpus.Mask())},
		{"complete_cpuset", hwlocMask(cpus.Union(offline).Mask())},
		{"nodeset", hwlocMask(nodes.Mask())},
		{"complete_nodeset", hwlocMask(nodes.Mask())},
		{"gp_index", strconv.Itoa(p.last)},
	}
	if root {
		attrs = append(attrs, [2]string{"allowed_cpuset", attrs[0][1]}, [2]string{"allowed_nodeset", attrs[2][1]})
	}
	return attrs
}

// hwlocMask turns the kernel's "ff,00000000" into "0x000000ff,0x0".
func hwlocMask(mask string) string {
	groups := strings.Split(mask, ",")
	for i, g := range groups {
		n, _ := strconv.ParseUint(g, 16, 32)
		groups[i] = fmt.Sprintf("0x%08x", n)
	}
	return strings.Join(groups, ",")
}

// memory prints a node within its side caches, the outermost first.
func (p *hwlocPrinter) memory(depth int, n Node, at *hwlocItem) {
	nodes := set.FromNodes(n.ID)
	for i := len(n.SideCaches) - 1; i >= 0; i-- {
		c := n.SideCaches[i]
		attrs := append([][2]string{{"type", "MemCache"}}, p.sets(at.cpus, at.offline, nodes, false)...)
		p.open(depth, "object", false, append(attrs,
			[2]string{"cache_size", decimal(c.Size)}, [2]string{"depth", strconv.Itoa(c.Level)},
			[2]string{"cache_linesize", decimal(c.Line)}, [2]string{"cache_associativity", "0"}, [2]string{"cache_type", "0"})...)
		depth++
	}
	attrs := append([][2]string{{"type", "NUMANode"}, {"os_index", strconv.Itoa(n.ID)}}, p.sets(at.cpus, at.offline, nodes, false)...)
	p.gp[n.ID] = p.last
	if n.Memory.Known() {
		attrs = append(attrs, [2]string{"local_memory", decimal(n.Memory)})
	}
	p.open(depth, "object", false, attrs...)
	if size, ok := p.m.PageSize.Get(); ok && size > 0 {
		rest := n.Memory.Or(0)
		for _, huge := range n.HugePages {
			rest -= unit.Bytes(huge.Count.Or(0)) * huge.Size
		}
		p.open(depth+1, "page_type", true, [2]string{"size", decimal(p.m.PageSize)}, [2]string{"count", strconv.FormatInt(max(0, int64(rest/size)), 10)})
		for _, huge := range n.HugePages {
			p.open(depth+1, "page_type", true, [2]string{"size", strconv.FormatInt(int64(huge.Size), 10)}, [2]string{"count", strconv.Itoa(huge.Count.Or(0))})
		}
	}
	if n.CPUs.IsEmpty() {
		p.info(depth+1, cpulessInfo, "1")
	}
	p.line(depth, "</object>")
	for range n.SideCaches {
		depth--
		p.line(depth, "</object>")
	}
}

func decimal(b unit.Opt[unit.Bytes]) string { return strconv.FormatInt(int64(b.Or(0)), 10) }

// hwlocRow is how many numbers hwloc prints in one element.
const hwlocRow = 10

// distances prints the matrix; kind 5 is "from the operating system" and "latency". It
// returns what was left out; a machine whose distances are all unknown has no matrix.
func (p *hwlocPrinter) distances() (left []string) {
	if len(p.m.Nodes) < 2 {
		return nil
	}
	var ids, values []int
	known := false
	for _, a := range p.m.Nodes {
		ids = append(ids, a.ID)
		for _, b := range p.m.Nodes {
			d, ok := p.m.Distance(a.ID, b.ID).Get()
			if !ok && len(left) == 0 {
				left = []string{fmt.Sprintf("the distances, because that from node %d to node %d is unknown", a.ID, b.ID)}
			}
			known = known || ok && a.ID != b.ID
			values = append(values, d)
		}
	}
	switch {
	case !known:
		return nil
	case len(left) > 0:
		return left
	}
	p.open(1, "distances2", false, [2]string{"type", "NUMANode"}, [2]string{"nbobjs", strconv.Itoa(len(ids))},
		[2]string{"kind", "5"}, [2]string{"name", "NUMALatency"}, [2]string{"indexing", "os"})
	p.numbers("indexes", ids)
	p.numbers("u64values", values)
	p.line(1, "</distances2>")
	return nil
}

// links prints the matrices between devices. Kind 25 is "from the operating system",
// "bandwidth" and "of several types"; 21 has "latency" for bandwidth.
func (p *hwlocPrinter) links() (left []string) {
	for _, l := range p.m.Links {
		var indexes []string
		var values []int
		ok := true
		for i, name := range l.Devices {
			indexes = append(indexes, p.devices[name])
			ok = ok && p.devices[name] != ""
			for j := range l.Devices {
				v, known := l.Values[i][j].Get()
				ok = ok && (known || i == j)
				values = append(values, v)
			}
		}
		if !ok {
			left = append(left, "the matrix "+l.Name)
			continue
		}
		kind := "25"
		if strings.HasSuffix(l.Name, "Hops") {
			kind = "21"
		}
		p.open(1, "distances2hetero", false, [2]string{"nbobjs", strconv.Itoa(len(indexes))}, [2]string{"kind", kind}, [2]string{"name", l.Name})
		p.fields("indexes", indexes)
		p.numbers("u64values", values)
		p.line(1, "</distances2hetero>")
	}
	return left
}

// kinds prints the kinds of CPUs with hwloc's names for Intel's.
func (p *hwlocPrinter) kinds() {
	for _, k := range p.m.Kinds {
		p.open(1, "cpukind", false, [2]string{"cpuset", hwlocMask(k.CPUs.Mask())})
		if slices.Contains(kindNames, k.Name) {
			p.info(2, "CoreType", "Intel"+strings.ToUpper(k.Name[:1])+k.Name[1:])
		} else if k.Name != "" {
			p.info(2, "CoreType", k.Name)
		}
		if c, ok := k.Capacity.Get(); ok {
			p.info(2, "LinuxCapacity", strconv.Itoa(c))
		}
		p.line(1, "</cpukind>")
	}
}

func (p *hwlocPrinter) info(depth int, name, value string) {
	p.open(depth, "info", true, [2]string{"name", name}, [2]string{"value", value})
}

// numbers prints rows of numbers.
func (p *hwlocPrinter) numbers(name string, all []int) {
	fields := make([]string, len(all))
	for i, n := range all {
		fields[i] = strconv.Itoa(n)
	}
	p.fields(name, fields)
}

// fields prints rows; length is that of the text, and hwloc's own reader relies on it.
func (p *hwlocPrinter) fields(name string, all []string) {
	for len(all) > 0 {
		row := all[:min(hwlocRow, len(all))]
		all = all[len(row):]
		var b strings.Builder
		for _, field := range row {
			b.WriteString(field + " ")
		}
		p.line(2, fmt.Sprintf(`<%s length="%d">%s</%s>`, name, b.Len(), b.String(), name))
	}
}

// memattrs prints HMAT's figures, of the class that hwloc would have read: 1, else 0.
// flags: 1 higher is better, 2 lower is better, 4 as seen by an initiator.
func (p *hwlocPrinter) memattrs() {
	for _, name := range hwlocAttrNames {
		flags := "5"
		if strings.HasSuffix(name, "Latency") {
			flags = "6"
		}
		open := false
		for _, n := range p.m.Nodes {
			for _, a := range hwlocAccess(n) {
				value, ok := a.value(name)
				if cpus := p.m.CPUsOf(a.Initiators); ok && !cpus.IsEmpty() {
					if !open {
						p.open(1, "memattr", false, [2]string{"name", name}, [2]string{"flags", flags})
						open = true
					}
					p.open(2, "memattr_value", true, [2]string{"target_obj_type", "NUMANode"},
						[2]string{"target_obj_gp_index", strconv.Itoa(p.gp[n.ID])},
						[2]string{"value", strconv.FormatInt(value, 10)}, [2]string{"initiator_cpuset", hwlocMask(cpus.Mask())})
				}
			}
		}
		if open {
			p.line(1, "</memattr>")
		}
	}
}

func hwlocAccess(n Node) []Access {
	var best []Access
	for _, a := range n.Access {
		if len(best) == 0 || a.Class == 1 && best[0].Class != 1 {
			best = []Access{a}
		} else if a.Class == best[0].Class {
			best = append(best, a)
		}
	}
	return best
}

// value is one of hwlocAttrNames, in hwloc's unit.
func (a Access) value(name string) (int64, bool) {
	mib := func(b unit.Opt[unit.Bytes]) (int64, bool) {
		v, ok := b.Get()
		return int64(v / unit.MiB), ok
	}
	ns := func(o unit.Opt[int]) (int64, bool) {
		v, ok := o.Get()
		return int64(v), ok
	}
	switch name {
	case "ReadLatency":
		return ns(a.ReadLatency)
	case "WriteLatency":
		return ns(a.WriteLatency)
	case "ReadBandwidth":
		return mib(a.ReadBandwidth)
	}
	return mib(a.WriteBandwidth)
}
