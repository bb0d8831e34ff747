// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// access reads hwloc's memory attributes, which it has from HMAT:
//
//	<memattr name="ReadLatency" flags="6">
//	  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="25" value="26" initiator_cpuset="0x3"/>
//
// Units: ns, MiB/s. "Latency" and "Bandwidth" repeat the worse of both directions.
func (doc *hwlocDocument) access(m *Machine) error {
	initiators := map[string]set.NodeSet{} // by cpuset: there are few, each in many attributes
	for _, a := range doc.attrs {
		o := doc.byGP[a.gp]
		if o == nil || o.kind != "NUMANode" || a.cpuset == "" {
			continue
		}
		value, err := strconv.ParseInt(a.value, 10, 64)
		if err != nil || value <= 0 || value > math.MaxInt32 {
			return fmt.Errorf("line %d: value %s of %s: want a number up to %d", a.line, clip(a.value), a.name, math.MaxInt32)
		}
		nodes, seen := initiators[a.cpuset]
		if !seen {
			if nodes, err = m.initiators(a, len(initiators)); err != nil {
				return err
			}
			initiators[a.cpuset] = nodes
		}
		id, err := o.osIndex(set.MaxNode)
		if err != nil {
			return err
		}
		m.addAccess(id, nodes, a.name, value)
	}
	return nil
}

// maxInitiators bounds the different cpusets: hwloc has one for each node, and one for each
// group of nodes that HMAT calls equally near.
const maxInitiators = 2 * (set.MaxNode + 1)

func (m *Machine) initiators(a hwlocAttr, had int) (set.NodeSet, error) {
	cpus, err := parseHwlocMask(a.cpuset)
	switch {
	case err != nil:
		return set.NodeSet{}, fmt.Errorf("line %d: initiator_cpuset: %w", a.line, err)
	case had == maxInitiators:
		return set.NodeSet{}, fmt.Errorf("line %d: memory attributes of more than %d cpusets", a.line, maxInitiators)
	}
	return m.nodesWithin(cpus), nil
}

var hwlocAttrNames = [...]string{"ReadLatency", "WriteLatency", "ReadBandwidth", "WriteBandwidth"}

// nodesWithin returns the nodes whose CPUs are among these.
func (m *Machine) nodesWithin(cpus set.CPUSet) set.NodeSet {
	return m.nodesWhere(func(n *Node) bool { return !n.CPUs.IsEmpty() && n.CPUs.SubsetOf(cpus) })
}

func (m *Machine) addAccess(id int, initiators set.NodeSet, name string, value int64) {
	i, ok := m.nodeIndex(id)
	if !ok {
		return
	}
	n := &m.Nodes[i]
	k := slices.IndexFunc(n.Access, func(a Access) bool { return a.Initiators == initiators })
	if k < 0 {
		k = len(n.Access)
		n.Access = append(n.Access, Access{Class: 1, Initiators: initiators})
	}
	switch a := &n.Access[k]; name {
	case "ReadLatency":
		a.ReadLatency = unit.Some(int(value))
	case "WriteLatency":
		a.WriteLatency = unit.Some(int(value))
	case "ReadBandwidth":
		a.ReadBandwidth = unit.Some(unit.Bytes(value) * unit.MiB)
	case "WriteBandwidth":
		a.WriteBandwidth = unit.Some(unit.Bytes(value) * unit.MiB)
	}
}

// devices reads PCIDev objects and the OSDev names below:
//
//	<object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0200 [8086:1521] [1028:0000] 01">
//	  <object type="OSDev" name="eth0" osdev_type="2">
func (doc *hwlocDocument) devices(m *Machine) error {
	places := map[*hwlocObject]Device{} // what all devices of an object have
	for _, o := range doc.each("PCIDev") {
		d, ok, err := o.device()
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		place := o
		for place != nil && isIO(place.kind) {
			if _, ok := parsePCIAddress(place.attrs["pci_busid"]); ok && place != o {
				d.Bridges = append(d.Bridges, place.attrs["pci_busid"])
			}
			place = place.parent
		}
		slices.Reverse(d.Bridges)
		near, seen := places[place]
		if !seen && place != nil {
			near.CPUs = place.cpus.Intersect(m.OnlineCPUs())
			near.Node = m.nodeWithCPUs(near.CPUs)
			places[place] = near
		}
		d.CPUs, d.Node = near.CPUs, near.Node
		m.Devices = append(m.Devices, d)
	}
	sortDevices(m.Devices)
	return nil
}

func isIO(kind string) bool { return kind == "PCIDev" || kind == "Bridge" || kind == "OSDev" }

// nodeWithCPUs is the one of several nodes that has exactly these CPUs (3).
func (m *Machine) nodeWithCPUs(cpus set.CPUSet) unit.Opt[int] {
	nodes := m.nodesWhere(func(n *Node) bool { return !cpus.IsEmpty() && n.CPUs == cpus })
	id, ok := nodes.First()
	return unit.OptOf(id, ok && nodes.Len() == 1 && len(m.Nodes) > 1)
}

// device decodes one PCIDev; false when it is of no class of interest.
func (o *hwlocObject) device() (Device, bool, error) {
	d := Device{Address: o.attrs["pci_busid"]}
	if _, ok := parsePCIAddress(d.Address); !ok {
		return Device{}, false, fmt.Errorf("line %d: pci_busid %s: want 0000:00:00.0", o.line, clip(d.Address))
	}
	f := strings.FieldsFunc(o.attrs["pci_type"], func(r rune) bool { return strings.ContainsRune(" []:", r) })
	var ids [3]uint64
	for i := range ids {
		if i >= len(f) {
			return Device{}, false, fmt.Errorf("line %d: pci_type %s: want class [vendor:device]", o.line, clip(o.attrs["pci_type"]))
		}
		n, err := strconv.ParseUint(f[i], 16, 16)
		if err != nil {
			return Device{}, false, fmt.Errorf("line %d: pci_type %s: want class [vendor:device]", o.line, clip(o.attrs["pci_type"]))
		}
		ids[i] = n
	}
	class, ok := classOf(uint32(ids[0]))
	d.Class, d.Vendor, d.Model = class, uint16(ids[1]), uint16(ids[2])
	for _, c := range o.children {
		if name := c.attrs["name"]; c.kind == "OSDev" && name != "" && c.attrs["osdev_type"] != osdevDMA {
			d.Names = append(d.Names, name)
		}
		for _, name := range []string{"CXLRAMSize", "CXLPMEMSize"} {
			if size, ok := c.kib(name).Get(); ok {
				d.Memory = unit.Some(d.Memory.Or(0) + size)
			}
		}
	}
	slices.Sort(d.Names)
	return d, ok, nil
}

// kib is the size that an info has in KiB.
func (o *hwlocObject) kib(name string) unit.Opt[unit.Bytes] {
	n, err := strconv.ParseInt(strings.TrimSuffix(o.infos[name], "KiB"), 10, 64)
	return unit.OptOf(unit.Bytes(n)*unit.KiB, err == nil && n >= 0 && n <= int64(MaxMemory/unit.KiB))
}

// dax lists the OSDev objects of the dax bus. hwloc does not tell their node and driver;
// WriteHwloc does.
//
//	<object type="OSDev" name="dax0.0" subtype="SPM" osdev_type="0"><info name="DAXType" value="SPM"/>
func (doc *hwlocDocument) dax(m *Machine) error {
	for _, o := range doc.each("OSDev") {
		name := o.attrs["name"]
		if !strings.HasPrefix(name, "dax") || o.infos["DAXType"] == "" {
			continue
		}
		node, err := strconv.ParseUint(o.infos[daxNodeInfo], 10, 16)
		m.DAX = append(m.DAX, DAX{Name: name, Size: o.kib("Size"), Node: unit.OptOf(int(node), err == nil && node <= set.MaxNode), Driver: o.infos[daxDriverInfo]})
	}
	slices.SortStableFunc(m.DAX, func(a, b DAX) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// osdevDMA is HWLOC_OBJ_OSDEV_DMA: a channel of a DMA engine.
const osdevDMA = "4"
