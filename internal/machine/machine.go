// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// LocalDistance is the SLIT distance of a node to itself: by definition 10
// (ACPI 6.5, 5.2.17; LOCAL_DISTANCE in include/linux/topology.h).
const LocalDistance = 10

// SLITExcess is the part of the extra latency promised by SLIT that is real, where it was
// not measured. It is the only place that says so: the simulator, the doctor, Pays and MAO
// use it. Measured: 138/80 and 144/90 ns at the usual 21: 0.66 and 0.55; AMD in one
// socket at 12: 0.4–0.6 (latency facts; papers, §1).
const SLITExcess = 0.6

// LatencyRatio is latency as a multiple of the local one by SLIT distance, with so much
// of the excess. An estimate.
func LatencyRatio[D int | float64](distance D, excess float64) float64 {
	return 1 + float64((float64(distance)/LocalDistance-1)*excess)
}

// Machine is a host's topology. It is a value that never changes after it was made, so it
// may be shared freely; its slices must be treated as read-only.
type Machine struct {
	// Origin is where the description comes from: "live", "recorded:<name>",
	// "shape:<name>" or "fake:<what>".
	Origin string `json:"origin"`
	// Nodes by ascending id; ids may be sparse.
	Nodes []Node `json:"nodes"`
	// Distances[i][j] is the SLIT distance from Nodes[i] to Nodes[j], as read
	// (see Distance, which is what callers want).
	Distances [][]unit.Opt[int] `json:"distances"`
	// CPUs by ascending id, the offline ones too.
	CPUs []CPU `json:"cpus"`
	// Packages, Dies and Cores are the groups that CPU.Package, CPU.Die and
	// CPU.Core are indexes into, ordered by their lowest CPU. Empty: unknown.
	Packages []set.CPUSet `json:"packages"`
	Dies     []set.CPUSet `json:"dies"`
	Cores    []set.CPUSet `json:"cores"`
	// L2s are the level 2 data caches, LLCs the last-level ones (the highest
	// level each CPU has, be it 2 or 3). CPU.L2 and CPU.LLC are indexes.
	L2s  []Cache `json:"l2s"`
	LLCs []Cache `json:"llcs"`
	// Inner are the other caches, by level: L1s, and what lies below the last level, such
	// as an L3 below an L4.
	Inner []Cache `json:"inner_caches,omitempty"`
	// Kinds are the kinds of CPUs of a hybrid machine; empty when all are alike, or when
	// nothing tells.
	Kinds []CPUKind `json:"cpu_kinds,omitempty"`
	// PageSize is the base page size. Nothing in sysfs shows it: a live reader fills it
	// in, a recorded tree may have it.
	PageSize unit.Opt[unit.Bytes] `json:"page_bytes"`
	// Devices are the PCI devices of interest, by address.
	Devices []Device `json:"devices,omitempty"`
	// DAX are the memory regions of the dax bus: persistent, CXL or special-purpose memory.
	DAX []DAX `json:"dax,omitempty"`
	// Links are matrices between devices: NVLink, XGMI.
	Links []Links `json:"links,omitempty"`
	// Doubts are contradictions in the firmware's tables about nodes, one clause each. A
	// policy should not bind on a machine that has any.
	Doubts []string `json:"doubts,omitempty"`
	// PackageDoubts are contradictions about packages. Nodes have their CPUs and distances
	// from other tables, so they are no reason not to bind.
	PackageDoubts []string `json:"package_doubts,omitempty"`
}

// Node is a NUMA node.
type Node struct {
	ID     int                  `json:"id"`
	CPUs   set.CPUSet           `json:"cpus"`         // online only; empty for a CPU-less node
	Memory unit.Opt[unit.Bytes] `json:"memory_bytes"` // MemTotal: what the kernel manages; may be a known 0
	// Access is HMAT's description of this memory, by class of initiator: 0 is the best
	// initiator of any kind, 1 the best CPU.
	Access []Access `json:"access,omitempty"`
	// SideCaches are memory-side caches in front of it, by level.
	SideCaches []SideCache `json:"side_caches,omitempty"`
	// HugePages are the pools of huge pages on it, by size.
	HugePages []HugePages `json:"huge_pages,omitempty"`
	// Near are the CPUs next to a node without any, where hwloc's XML said so. See NearCPUs.
	Near set.CPUSet `json:"near_cpus,omitzero"`
	// Tier is the kernel's memory tier (the number in memory_tierN): lower is faster.
	Tier unit.Opt[int] `json:"tier,omitzero"`
}

// HugePages is the size of one pool's pages, and the number that are in it.
type HugePages struct {
	Size  unit.Bytes    `json:"page_bytes"`
	Count unit.Opt[int] `json:"pages"`
}

// CPUKind is some CPUs that differ from the machine's others.
type CPUKind struct {
	// Name is the kernel's PMU ("core", "atom", "lowpower"), or hwloc's CoreType.
	Name string     `json:"name"`
	CPUs set.CPUSet `json:"cpus"`
	// Capacity is relative to the largest of the machine, which has 1024.
	Capacity unit.Opt[int] `json:"capacity"`
}

// DAX is one device of the dax bus.
type DAX struct {
	Name string               `json:"name"` // "dax0.0"
	Size unit.Opt[unit.Bytes] `json:"bytes"`
	// Node is where its memory is, or would be if the kernel used it as such. It need not
	// be one of Machine.Nodes.
	Node   unit.Opt[int] `json:"node"`
	Driver string        `json:"driver,omitempty"` // "kmem": it is memory of the node; "device_dax"
}

// Links is one matrix between devices.
type Links struct {
	Name string `json:"name"` // "NVLinkBandwidth", "XGMIHops", "XGMIBandwidth": MB/s or hops
	// Devices are the kernel's or the driver's names, or PCI addresses.
	Devices []string `json:"device_names"`
	// Values[i][j] is from Devices[i] to Devices[j].
	Values [][]unit.Opt[int] `json:"matrix"`
}

// Access is the performance of a node's memory as seen from some nodes, from
// nodeN/accessC/initiators (since 5.2). It is the firmware's statement, not a
// measurement.
type Access struct {
	Class          int                  `json:"access_class"`
	Initiators     set.NodeSet          `json:"initiators"`
	ReadLatency    unit.Opt[int]        `json:"read_latency_ns"`
	WriteLatency   unit.Opt[int]        `json:"write_latency_ns"`
	ReadBandwidth  unit.Opt[unit.Bytes] `json:"read_bytes_per_s"`
	WriteBandwidth unit.Opt[unit.Bytes] `json:"write_bytes_per_s"`
}

// SideCache is a cache in front of a node's memory (Optane's memory mode, an
// HBM cache), from nodeN/memory_side_cache/indexL (since 5.2).
type SideCache struct {
	Level int                  `json:"level"`
	Size  unit.Opt[unit.Bytes] `json:"bytes"`
	Line  unit.Opt[unit.Bytes] `json:"line_bytes"`
}

// Device is a PCI device that placement cares for.
type Device struct {
	Address string      `json:"address"` // "0000:3b:00.0"
	Class   DeviceClass `json:"class"`
	Names   []string    `json:"names,omitempty"` // what the kernel calls it: "eth0", "nvme0n1", "card0"
	Vendor  uint16      `json:"vendor_id"`
	Model   uint16      `json:"model"`
	// Node is where it is attached; unknown when the kernel says -1 or nothing.
	Node unit.Opt[int] `json:"node"`
	// CPUs are the CPUs next to it (local_cpulist); empty when unknown.
	CPUs set.CPUSet `json:"cpus"`
	// Bridges are the PCI bridges on the way to it, the host's first: "0000:3a:00.0".
	Bridges []string `json:"bridges,omitempty"`
	// Memory is what a CXL device has, volatile and persistent.
	Memory unit.Opt[unit.Bytes] `json:"memory_bytes,omitzero"`
}

// DeviceClass is the kind of a Device.
type DeviceClass string

// The classes, from the PCI class code.
const (
	Network     DeviceClass = "network"
	Storage     DeviceClass = "storage"
	GPU         DeviceClass = "gpu"
	Accelerator DeviceClass = "accelerator"
	CXLMemory   DeviceClass = "cxl"
)

// DeviceClasses are all of them.
func DeviceClasses() []DeviceClass {
	return []DeviceClass{Network, Storage, GPU, Accelerator, CXLMemory}
}

// CPU is a logical CPU. Package, Die, Core, L2 and LLC are indexes into the
// machine's slices of the same name, not the kernel's numbers: those are not
// unique over a machine (core_id) or missing (die_id -1). All five are unknown
// of an offline CPU.
type CPU struct {
	ID      int           `json:"id"`
	Node    unit.Opt[int] `json:"node"` // the id of one of Machine.Nodes
	Package unit.Opt[int] `json:"package"`
	Die     unit.Opt[int] `json:"die"`
	Core    unit.Opt[int] `json:"core"`
	L2      unit.Opt[int] `json:"l2"`
	LLC     unit.Opt[int] `json:"llc"`
	Online  bool          `json:"online"`
}

// Cache is one cache: data, unified or (Instr) instruction.
type Cache struct {
	Level int                  `json:"level"`
	Instr bool                 `json:"instruction,omitempty"` // holds instructions only
	ID    unit.Opt[int]        `json:"id"`                    // the kernel's id: names the domain in resctrl's schemata
	CPUs  set.CPUSet           `json:"cpus"`
	Size  unit.Opt[unit.Bytes] `json:"bytes"`
}

// nodeIndex is where node id is in Nodes.
func (m *Machine) nodeIndex(id int) (int, bool) {
	if id >= 0 && id < len(m.Nodes) && m.Nodes[id].ID == id { // mostly ids have no gaps
		return id, true
	}
	return slices.BinarySearchFunc(m.Nodes, id, func(n Node, id int) int { return cmp.Compare(n.ID, id) })
}

// Node returns the node with this id.
func (m Machine) Node(id int) (Node, bool) {
	i, ok := m.nodeIndex(id)
	if !ok {
		return Node{}, false
	}
	return m.Nodes[i], true
}

// CPU returns the CPU with this id.
func (m Machine) CPU(id int) (CPU, bool) {
	i, ok := slices.BinarySearchFunc(m.CPUs, id, func(c CPU, id int) int { return cmp.Compare(c.ID, id) })
	if !ok {
		return CPU{}, false
	}
	return m.CPUs[i], true
}

// NodeOf returns the node of a CPU, online or not; false when the CPU does not
// exist or its node is unknown.
func (m Machine) NodeOf(cpu int) (int, bool) {
	c, _ := m.CPU(cpu)
	return c.Node.Get()
}

// Distance returns the SLIT distance from one node to another: 10 is local, no unit,
// directed (the way back may differ), 255 is "no way". Unknown when the firmware does not
// give it or a node does not exist. A node to itself is always known.
func (m Machine) Distance(from, to int) unit.Opt[int] {
	i, ok1 := m.nodeIndex(from)
	j, ok2 := m.nodeIndex(to)
	if !ok1 || !ok2 {
		return unit.None[int]()
	}
	d := unit.None[int]()
	if i < len(m.Distances) && j < len(m.Distances[i]) {
		d = m.Distances[i][j]
	}
	if i == j && !d.Known() {
		return unit.Some(LocalDistance)
	}
	return d
}

// Nearest returns all node ids as seen from one: itself first, then by distance,
// then by id; nodes at an unknown distance last. Nil when the node does not exist.
func (m Machine) Nearest(from int) []int {
	if _, ok := m.nodeIndex(from); !ok {
		return nil
	}
	const far = 256 // beyond every SLIT distance, which is one byte
	rank := func(id int) int {
		if id == from {
			return -1
		}
		return m.Distance(from, id).Or(far)
	}
	ids := m.NodeIDs().IDs()
	slices.SortStableFunc(ids, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
	return ids
}

// CPUsOf returns the online CPUs of these nodes.
func (m Machine) CPUsOf(nodes set.NodeSet) set.CPUSet {
	var cpus set.CPUSet
	for i := range m.Nodes {
		if nodes.Has(m.Nodes[i].ID) {
			cpus = cpus.Union(m.Nodes[i].CPUs)
		}
	}
	return cpus
}

// NodeIDs returns all nodes.
func (m Machine) NodeIDs() set.NodeSet {
	return m.nodesWhere(func(*Node) bool { return true })
}

// NodesWithCPUs returns the nodes that have an online CPU.
func (m Machine) NodesWithCPUs() set.NodeSet {
	return m.nodesWhere(func(n *Node) bool { return !n.CPUs.IsEmpty() })
}

// NodesWithMemory returns the nodes known to have memory.
func (m Machine) NodesWithMemory() set.NodeSet {
	return m.nodesWhere(func(n *Node) bool { return n.Memory.Or(0) > 0 })
}

func (m *Machine) nodesWhere(ok func(*Node) bool) set.NodeSet {
	var nodes set.NodeSet
	for i := range m.Nodes {
		if ok(&m.Nodes[i]) {
			nodes = nodes.With(m.Nodes[i].ID)
		}
	}
	return nodes
}

// OnlineCPUs returns the CPUs that are online, whether or not their node is known.
func (m Machine) OnlineCPUs() set.CPUSet {
	var ids []int
	for _, c := range m.CPUs {
		if c.Online {
			ids = append(ids, c.ID)
		}
	}
	return set.FromCPUs(ids...)
}

// FewestCPUs is the fewest CPUs of a node that has any; 0 without one.
func (m Machine) FewestCPUs() (fewest float64) {
	for _, n := range m.Nodes {
		if c := float64(n.CPUs.Len()); c > 0 && (fewest == 0 || c < fewest) {
			fewest = c
		}
	}
	return fewest
}

// AllDoubts are the contradictions about nodes, then those about packages.
func (m Machine) AllDoubts() []string { return slices.Concat(m.Doubts, m.PackageDoubts) }
