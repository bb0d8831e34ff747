// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"

	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// PageBytes is a base page. Amounts of memory in this package are pages, as float64:
// behaviours are rates.
const PageBytes = 4096

// BytesOf rounds to whole pages, as a kernel counts.
func BytesOf(pages float64) unit.Bytes { return unit.Bytes(math.Round(pages)) * PageBytes }

// Host is the state of one machine's operating system. Indexes of nodes are those
// of memsys.System.
type Host struct {
	Settings Settings
	Nodes    []Node
	Groups   []*Group // in the order of their arrival
	// Zonelist[n] lists the nodes that an allocation on n tries, in order, itself first
	// (build_zonelists: by distance).
	Zonelist [][]int

	scratch scratch
}

// Node is one node's CPUs and memory.
type Node struct {
	CPUs  float64 // online
	Pages float64 // managed
	Other float64 // pages that no group has: the kernel's own
}

// Group is a workload as the operating system sees it: a cgroup with its threads and pages.
type Group struct {
	ID      string
	Threads float64   // threads that may run at once
	On      []float64 // threads by the node they are on; sums to Threads
	// CPUs[n] are the CPUs of its cpuset (or of its threads' affinity) on node n; Mems says
	// whether cpuset.mems has the node. Never all 0, never all false.
	CPUs []float64
	Mems []bool
	// Pinned threads are tied one by one: nothing moves them.
	Pinned bool
	Quota  float64 // CPUs' worth of time (cpu.max); 0: none
	Weight float64 // cpu.weight / 100: its weight where CPUs are scarce; 0: 1
	Policy Policy  // where its new pages come from
	Memory Memory
	// WakeRate is how often per second a thread sleeps and wakes. Each wake-up may place it
	// elsewhere (select_task_rq_fair).
	WakeRate float64
	Random   detmath.Random // its own stream: one more group changes nothing for others
	Scan     Scan           // NUMA balancing's state
	Used     []float64      // CPUs' worth by node, in the last Run

	kept   [2][]float64 // host.go
	wander wander
	pass   pass
}

// Memory is a group's pages by location.
type Memory struct {
	// Private[t*nodes+h] are the pages on node h of threads that are now on node t: only
	// their thread uses them. When threads move, their pages move from row to row.
	Private []float64
	Shared  []float64 // anonymous or shm, used by all threads alike
	Mapped  []float64 // files, mapped and used by all threads alike
	Cache   []float64 // page cache that no process maps
}

// Policy of a group's tasks (set_mempolicy, numactl): where new pages come from, including
// page cache (filemap_alloc_folio uses the task's policy).
type Policy struct {
	Mode  Mode
	Nodes []bool // Bind, Interleave
}

// Mode is a memory policy.
type Mode string

// The modes, as the kernel spells them.
const (
	Local      Mode = "local"
	Bind       Mode = "bind"
	Interleave Mode = "interleave"
)

// Kind of memory in Touch.
type Kind int

// The kinds of pages.
const (
	Private Kind = iota
	Shared
	Mapped
	Cache
)

// Scan is NUMA balancing's view of a group.
type Scan struct {
	Period float64   // seconds of one thread's scan (numa_scan_period)
	Sunk   float64   // CPU seconds spent on scanning, faults and moves, in total
	Moved  float64   // pages, in total
	Local  float64   // share of the faults of the last steps that were local
	Marked []float64 // private to Balance
}

// Settings switch behaviours; the zero value switches all off. Figures that are 0 mean the
// kernel's defaults.
type Settings struct {
	LoadBalance   bool `yaml:"load_balance" json:"load_balance"`     // load_balance: threads move to idle nodes
	WakePlacement bool `yaml:"wake_placement" json:"wake_placement"` // select_task_rq_fair: wake-ups on other nodes
	NUMABalancing bool `yaml:"numa_balancing" json:"numa_balancing"` // kernel.numa_balancing
	Fallback      bool `yaml:"fallback" json:"fallback"`             // get_page_from_freelist: a full node's allocations go elsewhere
	Reclaim       bool `yaml:"reclaim" json:"reclaim"`               // kswapd: page cache makes room
	// Busy is the probability that a write to a cpuset file is refused with EBUSY.
	Busy float64 `yaml:"busy" json:"busy"`
	// MoveSeconds is the CPU time of moving one byte of small pages; 0: MAO's 0.64 s/GB.
	MoveSeconds float64 `yaml:"-" json:"-"`
}

// DefaultSettings are those of a server: all but NUMA balancing, which a scenario chooses.
func DefaultSettings() Settings {
	return Settings{LoadBalance: true, WakePlacement: true, Fallback: true, Reclaim: true}
}

// Moved is what a page move, or a cpuset write, did.
type Moved struct {
	Pages   float64
	Left    float64 // pages still elsewhere that budget or room did not allow to move
	NoRoom  float64 // those of Left for which the target was full
	CPU     float64 // CPU seconds of the mover
	Stalled float64 // seconds for which the group stood still
}
