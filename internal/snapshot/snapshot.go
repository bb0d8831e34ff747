// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Schema is the version of the wire form. Readers refuse a newer one.
const Schema = 1

// Snapshot is one closer look. Counts and rates are over the period Length, which ends
// At; amounts are as of its end.
type Snapshot struct {
	Schema  int             `json:"schema"`
	At      time.Time       `json:"at"`
	Length  time.Duration   `json:"length_ns"`
	Machine machine.Machine `json:"machine"`
	// Window is of the same period: CPU, pages, counters and bindings of the
	// nodes and workloads.
	Window window.Window `json:"window"`
	// Nodes are parallel to Machine.Nodes and to Window.Nodes.
	Nodes     []Node    `json:"nodes"`
	Balancing Balancing `json:"numa_balancing"`
	Settings  Settings  `json:"settings"`
	Swapping  Swapping  `json:"swapping"`
	// Cgroups says where the files of a workload are, for a caller that writes them;
	// the zero value is unknown.
	Cgroups Cgroups `json:"cgroups"`
	// Self is what the program that took the snapshot used itself, in CPUs' worth of
	// time.
	Self unit.Value[float64] `json:"self_cpus"`
	// Hypervisor is the hypervisor that this host is a guest of: "" for none.
	Hypervisor unit.Value[string] `json:"hypervisor"`
	// Groups are parallel to Window.Workloads.
	Groups []Group `json:"groups"`
	// Processes by PID: those that were asked for.
	Processes []Process `json:"processes,omitempty"`
	IRQs      []IRQ     `json:"irqs,omitempty"`
	Samples   Samples   `json:"samples"`
	Problems  []string  `json:"problems,omitempty"` // what could not be read, a sentence each
}

// Node is what a window does not hold about a node.
type Node struct {
	ID       int        `json:"id"`
	Memory   Kinds      `json:"memory"`
	Numastat Numastat   `json:"numastat"`
	Pools    []HugePool `json:"huge_pages,omitempty"` // by page size
	Traffic  Traffic    `json:"traffic"`
	// LowFree is the amount of free memory below which the kernel begins to
	// reclaim or to allocate elsewhere: the low watermarks of its zones
	// (/proc/zoneinfo).
	LowFree unit.Value[unit.Bytes] `json:"low_watermark_bytes"`
}

// Kinds says what a node's memory is used for, in bytes. Total is the sum of Free,
// Anon, File, Shmem, Slab, Kernel, Huge and Other. No byte is in two of them; numastat
// gets this wrong for huge pages (numactl#115, #147).
type Kinds struct {
	Total  unit.Value[unit.Bytes] `json:"total_bytes"`
	Free   unit.Value[unit.Bytes] `json:"free_bytes"`
	Anon   unit.Value[unit.Bytes] `json:"anon_bytes"`  // private memory of processes, transparent huge pages included
	File   unit.Value[unit.Bytes] `json:"file_bytes"`  // page cache without Shmem
	Shmem  unit.Value[unit.Bytes] `json:"shmem_bytes"` // tmpfs and shared memory, transparent huge pages included
	Slab   unit.Value[unit.Bytes] `json:"slab_bytes"`  // the kernel's own objects
	Kernel unit.Value[unit.Bytes] `json:"kernel_bytes"`
	Huge   unit.Value[unit.Bytes] `json:"huge_bytes"`  // hugetlb pools, free pages in them included
	Other  unit.Value[unit.Bytes] `json:"other_bytes"` // the rest: not accounted by the kernel

	// Parts of the above.
	SlabReclaimable unit.Value[unit.Bytes] `json:"slab_reclaimable_bytes"`
	AnonHuge        unit.Value[unit.Bytes] `json:"anon_thp_bytes"`
	HugeFree        unit.Value[unit.Bytes] `json:"huge_free_bytes"`
	Dirty           unit.Value[unit.Bytes] `json:"dirty_bytes"`
	MappedFile      unit.Value[unit.Bytes] `json:"mapped_file_bytes"`
}

// Numastat is nodeN/numastat over the period, in pages that were allocated
// (since 2.6.9; Documentation/admin-guide/numastat.rst).
type Numastat struct {
	Hit           unit.Value[uint64] `json:"hit"`            // wanted here, and taken here
	Miss          unit.Value[uint64] `json:"miss"`           // wanted on another node, taken here instead
	Foreign       unit.Value[uint64] `json:"foreign"`        // wanted here, taken elsewhere: that node's miss
	InterleaveHit unit.Value[uint64] `json:"interleave_hit"` // here as interleaving asked
	LocalNode     unit.Value[uint64] `json:"local_node"`     // here, by a CPU of this node
	OtherNode     unit.Value[uint64] `json:"other_node"`     // here, by a CPU of another node
}

// HugePool is a node's hugetlb pool of one page size.
type HugePool struct {
	PageSize unit.Bytes         `json:"page_bytes"`
	Total    unit.Value[uint64] `json:"total"` // pages
	Free     unit.Value[uint64] `json:"free"`
	Surplus  unit.Value[uint64] `json:"surplus"`
}

// Traffic is what a node's memory controllers did in the period.
type Traffic struct {
	Reads  unit.Value[uint64]     `json:"reads"` // cache lines
	Writes unit.Value[uint64]     `json:"writes"`
	All    unit.Value[uint64]     `json:"all,omitzero"` // both, where the PMU does not tell them apart
	Busy   unit.Value[unit.Ratio] `json:"busy"`         // share of the time with a read waiting or served
}

// Balancing is the kernel's NUMA balancing: the setting, and counts over the
// period from /proc/vmstat (since 3.8).
type Balancing struct {
	Mode          unit.Value[int]    `json:"balancing_mode"` // /proc/sys/kernel/numa_balancing: 0 off, 1 on, 2 tiering
	PTEUpdates    unit.Value[uint64] `json:"pte_updates"`
	HintFaults    unit.Value[uint64] `json:"hint_faults"`
	HintLocal     unit.Value[uint64] `json:"hint_faults_local"`
	PagesMigrated unit.Value[uint64] `json:"pages_migrated"`
	MigrateFailed unit.Value[uint64] `json:"pgmigrate_fail"`
}

// Settings of the kernel that concern placement.
type Settings struct {
	ZoneReclaim unit.Value[int]        `json:"zone_reclaim_mode"`
	THP         unit.Value[string]     `json:"transparent_hugepage"` // "always", "madvise", "never"
	SwapTotal   unit.Value[unit.Bytes] `json:"swap_total_bytes"`
	SwapFree    unit.Value[unit.Bytes] `json:"swap_free_bytes"`
}

// Swapping is what went to swap and came back over the period, in pages
// (/proc/vmstat: pswpin, pswpout; since 2.6.0).
type Swapping struct {
	In  unit.Value[uint64] `json:"in"`
	Out unit.Value[uint64] `json:"out"`
}

// Cgroups is where the hierarchies that hold memory's placement are mounted.
type Cgroups struct {
	Cpuset Hierarchy `json:"cpuset"`
	Memory Hierarchy `json:"memory"`
}

// Hierarchy is a mounted cgroup hierarchy. Path "" is unknown.
type Hierarchy struct {
	Path string `json:"path"` // "/sys/fs/cgroup", "/sys/fs/cgroup/cpuset"
	V2   bool   `json:"v2"`
}

// Group is what a window does not hold about a workload's cgroup.
type Group struct {
	ID string `json:"id"`
	// ConfiguredCPUs and ConfiguredMems are its own cpuset; empty: it has none.
	ConfiguredCPUs set.CPUSet             `json:"configured_cpus"`
	ConfiguredMems set.NodeSet            `json:"configured_mems"`
	MemoryLimit    unit.Value[unit.Bytes] `json:"memory_limit_bytes"` // the tightest of its own and its ancestors'; unknown: none is set
	MemoryUsed     unit.Value[unit.Bytes] `json:"memory_used_bytes"`
	// Limited is the cgroup that has the limit, if that is not this one.
	Limited     *Limited           `json:"memory_limited_by,omitempty"`
	OOMKills    unit.Value[uint64] `json:"oom_kills"` // over the period
	AllocStalls unit.Value[uint64] `json:"reclaimed_pages"`
	PIDs        []int              `json:"pids,omitempty"`
	// Memory is by node: its own and that of the cgroups below it.
	Memory []GroupMemory `json:"memory_by_node,omitempty"`
}

// Limited is a cgroup above a workload with the tightest memory limit: the memory of
// all cgroups below it counts.
type Limited struct {
	ID   string                 `json:"id"`
	Used unit.Value[unit.Bytes] `json:"used_bytes"`
	File unit.Value[unit.Bytes] `json:"file_bytes"` // page cache, part of Used
}

// GroupMemory is a cgroup's memory on one node, from memory.numa_stat; no byte is in
// two of the kinds. v1 has anon, which includes shared memory there, and file only.
// Huge is from hugetlb.SIZE.numa_stat: unknown if no v2 hugetlb controller counts for
// the cgroup.
type GroupMemory struct {
	Anon   unit.Value[unit.Bytes] `json:"anon_bytes"`
	File   unit.Value[unit.Bytes] `json:"file_bytes"`
	Shmem  unit.Value[unit.Bytes] `json:"shmem_bytes"`
	Slab   unit.Value[unit.Bytes] `json:"slab_bytes"`
	Kernel unit.Value[unit.Bytes] `json:"kernel_bytes"` // stacks and page tables
	Huge   unit.Value[unit.Bytes] `json:"huge_bytes"`   // hugetlb pages of all sizes
}
