// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Limits of a shape. The first three are the lab's (HOMENODE_MAX_* in
// lab/include/homenode_lab.h): raising one means a new layout version there.
const (
	MaxShapeCPUs  = 64
	MaxShapeNodes = 16
	MaxShapeLinks = 64 // directed: two for each pair of Shape.Links

	// A guest kernel boots in less, but a node of 64 MiB has no room for a working set
	// beside its page structures.
	MinShapeMemory = 128 * unit.MiB
	// QEMU's memory backends are built of 2 MiB huge pages where possible.
	shapeMemoryStep = 2 * unit.MiB
	// The plugin's table of L1 lines (HOMENODE_L1_MAX in lab/plugin/model.h).
	maxShapeL1 = 256 * unit.KiB
	lineBytes  = 64
)

// Shape prescribes a machine of the lab: what QEMU builds and the plugin models.
type Shape struct {
	Name         string      `yaml:"name"`         // names the file, too: lab/shapes/<name>.yaml
	About        string      `yaml:"about"`        // one sentence
	Nodes        []ShapeNode `yaml:"nodes"`        // node i is Nodes[i]
	Distances    [][]int     `yaml:"distances"`    // SLIT: from row to column
	Housekeeping set.CPUSet  `yaml:"housekeeping"` // kept free of workloads; they still belong to a node
	Model        Model       `yaml:"model"`
	Links        [][2]int    `yaml:"links"` // undirected pairs of nodes; nil: see LinkPairs
	// Threads is the number of CPUs that share a core, its issue rate and its L2: with
	// 2, CPUs 0 and 1, 2 and 3, …
	Threads int `yaml:"threads"`
}

// ShapeNode is a node of a shape.
type ShapeNode struct {
	CPUs   set.CPUSet `yaml:"cpus"` // empty for a CPU-less node
	Memory unit.Bytes `yaml:"memory"`
}

// Model holds the figures of the modelled memory system. They are a model, not
// a measurement: only the two DRAM latencies named below come from hardware.
type Model struct {
	MHz        int        `yaml:"mhz"`         // model cycles per model-microsecond
	TimeFactor int        `yaml:"time_factor"` // factor by which periods and bursts are longer in the lab than on hardware
	L1         unit.Bytes `yaml:"l1"`          // private to a CPU; a power of two
	L2         unit.Bytes `yaml:"l2"`          // likewise
	LLC        unit.Bytes `yaml:"llc"`         // shared by a node's CPUs; a power of two
	L2Cycles   int        `yaml:"l2_cycles"`   // added to an access that misses L1 and hits L2
	LLCCycles  int        `yaml:"llc_cycles"`  // added to an access that hits the LLC
	// DRAMCycles is the idle latency by SLIT distance, in model cycles. A file that has
	// it replaces the whole default table, so that the file shows all latencies it
	// uses.
	DRAMCycles map[int]int `yaml:"dram_cycles"`
	MCCycles   int         `yaml:"memory_cycles_per_line"` // service time of a node's memory controller for one 64-byte line
	LinkCycles int         `yaml:"link_cycles_per_line"`   // service time of one directed link for one 64-byte line
	// TransferCycles is the latency, by SLIT distance, of a line that another CPU's
	// private cache holds modified. Nil: see Transfer.
	TransferCycles map[int]int `yaml:"transfer_cycles"`
	AtomicCycles   int         `yaml:"atomic_cycles"` // of a locked read-modify-write, beyond the cost of its line
	// Coherence off is the machine without a directory: a line may be in any number of
	// caches, and no cache learns of a write. It serves to measure the cost of
	// coherence.
	Coherence bool `yaml:"coherence"`
	// StreamParallelism is the number of outstanding misses of a detected sequential
	// stream.
	StreamParallelism int `yaml:"stream_parallelism"`
}

// DefaultModel returns the model of a shape without one of its own.
//
// DRAM: MAO measured 80 ns local and 138 ns remote on Skylake-SP with DDR4-2400
// (facts/papers.md §1); at its 2.7 GHz that is 216 and 373 cycles. Distance 31
// (540 cycles, 200 ns) is extrapolated. Everything else is the lab's choice:
// caches small enough for workloads of a few MiB, a controller that 3 streams of
// 4 misses saturate (3 × 4/216 ≈ 1/19 lines per cycle), and links of a third of
// a controller, so that contention shows with two CPUs per node. Smaller
// latencies make locality matter less; larger service times saturate earlier.
func DefaultModel() Model {
	return Model{
		MHz: 50, TimeFactor: 20,
		L1: 8 * unit.KiB, L2: 64 * unit.KiB, LLC: 512 * unit.KiB,
		L2Cycles: 12, LLCCycles: 40,
		DRAMCycles: map[int]int{10: 216, 21: 373, 31: 540},
		MCCycles:   19, LinkCycles: 57, StreamParallelism: 4,
		AtomicCycles: 18, Coherence: true,
	}
}

// Transfer is the latency in cycles of a line that a CPU at this distance holds
// modified. By default: 130 cycles inside a node (48 ns at 2.7 GHz), and between nodes
// four fifths of the DRAM latency of the distance, as Intel's MLC finds them on
// Skylake-SP (48 ns; 108 of 138 ns). The lab's choice.
func (m Model) Transfer(distance int) int {
	if c, ok := m.TransferCycles[distance]; ok {
		return c
	}
	if distance == LocalDistance {
		return 130
	}
	return max(1, m.DRAMCycles[distance]*4/5)
}

// CPUs returns all CPUs of the shape.
func (s Shape) CPUs() set.CPUSet {
	var all set.CPUSet
	for _, n := range s.Nodes {
		all = all.Union(n.CPUs)
	}
	return all
}

// threads is 1 if the shape does not set it.
func (s Shape) threads() int { return max(1, s.Threads) }

// coreOf is the CPUs of a CPU's core, itself included.
func (s Shape) coreOf(cpu int) set.CPUSet {
	var ids []int
	for first, i := cpu-cpu%s.threads(), 0; i < s.threads(); i++ {
		ids = append(ids, first+i)
	}
	return set.FromCPUs(ids...)
}

// ForWorkloads is the shape without its housekeeping CPUs: what workloads have.
func (s Shape) ForWorkloads() Shape {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].CPUs = s.Nodes[i].CPUs.Minus(s.Housekeeping)
	}
	s.Housekeeping = set.CPUSet{}
	return s
}

// Machine returns the machine a guest of this shape sees: one package and one
// LLC per node that has CPUs, one core and one L2 for every Threads CPUs.
func (s Shape) Machine() Machine {
	m := Machine{Origin: "shape:" + s.Name, PageSize: unit.Some(4 * unit.KiB)}
	for id, n := range s.Nodes {
		m.Nodes = append(m.Nodes, Node{ID: id, CPUs: n.CPUs, Memory: unit.Some(n.Memory)})
		row := make([]unit.Opt[int], len(s.Distances[id]))
		for to, d := range s.Distances[id] {
			row[to] = unit.Some(d)
		}
		m.Distances = append(m.Distances, row)
	}
	for id := range s.CPUs().All() {
		m.CPUs = append(m.CPUs, s.cpu(&m, id))
	}
	return m
}

// cpu adds the core and cache of CPU id, and returns the CPU.
func (s Shape) cpu(m *Machine, id int) CPU {
	node := 0
	for !s.Nodes[node].CPUs.Has(id) {
		node++
	}
	siblings, core := s.Nodes[node].CPUs, s.coreOf(id)
	group := len(m.Packages)
	for i, p := range m.Packages {
		if p.Has(id) {
			group = i
		}
	}
	if group == len(m.Packages) {
		m.Packages = append(m.Packages, siblings)
		m.LLCs = append(m.LLCs, Cache{Level: 3, CPUs: siblings, Size: unit.Some(s.Model.LLC)})
	}
	if id%s.threads() == 0 {
		m.Cores = append(m.Cores, core)
		m.L2s = append(m.L2s, Cache{Level: 2, CPUs: core, Size: unit.Some(s.Model.L2)})
	}
	own := unit.Some(len(m.Cores) - 1)
	return CPU{ID: id, Node: unit.Some(node), Package: unit.Some(group), LLC: unit.Some(group), Core: own, L2: own, Online: true}
}
