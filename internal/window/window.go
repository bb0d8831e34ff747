// SPDX-License-Identifier: Apache-2.0

package window

import (
	"sort"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Schema is the version of the wire form. Readers refuse a newer one. 2: the reasons of
// outcomes are codes and figures.
const Schema = 2

// Window is one period of one host.
type Window struct {
	Schema    int              `json:"schema"`
	Seq       uint64           `json:"seq"`
	At        time.Time        `json:"at"` // end of the period
	Length    time.Duration    `json:"length_ns"`
	Nodes     []Node           `json:"nodes"`     // ascending by id
	Workloads []Workload       `json:"workloads"` // ascending by ID
	Outcomes  []action.Outcome `json:"outcomes,omitempty"`
	Problems  []string         `json:"problems,omitempty"` // what could not be read, a sentence each
}

// Node is one NUMA node in one period.
type Node struct {
	ID      int                    `json:"id"`
	CPUs    set.CPUSet             `json:"cpus"`     // online
	CPUBusy unit.Value[float64]    `json:"cpu_busy"` // CPUs' worth of time, 0 … CPUs.Len()
	Memory  unit.Value[unit.Bytes] `json:"memory_bytes"`
	Free    unit.Value[unit.Bytes] `json:"free_bytes"`
	File    unit.Value[unit.Bytes] `json:"file_bytes"` // page cache
	Anon    unit.Value[unit.Bytes] `json:"anon_bytes"`
	// Traffic is what its memory controllers served in the period, reads and writes, bytes.
	Traffic unit.Value[unit.Bytes] `json:"traffic_bytes,omitzero"`
}

// Workload is one cgroup, VM or process tree in one period. Slices by node are
// parallel to Window.Nodes.
type Workload struct {
	ID      string `json:"id"`      // its cgroup path, e.g. "/demo/a"
	Service string `json:"service"` // the service it is a replica of; "" when no rule says
	Owner   string `json:"owner"`   // the manager of its cgroup: "none", "systemd", "docker", "kubelet", …
	// Labels are what that manager calls it, where a command has looked.
	Labels   Labels               `json:"labels,omitzero"`
	Approved bool                 `json:"approved"` // the offline side (now: the config) says binding pays
	Target   unit.Opt[unit.Ratio] `json:"target"`   // local access ratio it should have
	// Sensitive is the operator's statement whether it matters where its threads run
	// (Rao's tag). Unknown: there is none, and a policy that needs it must infer it.
	Sensitive unit.Opt[bool] `json:"numa_sensitive,omitzero"`
	// Near are the nodes of the devices that it should be close to (a network card, an
	// NVMe drive), as its operator says; empty: it does not matter.
	Near set.NodeSet `json:"near,omitzero"`
	// Latency is what its service reports of its quality, in seconds (the percentile that
	// its operator chose); unknown: no report.
	Latency unit.Value[float64] `json:"latency_s,omitzero"`

	Tasks unit.Value[int]     `json:"tasks"`
	CPU   unit.Value[float64] `json:"cpu"`   // CPUs' worth of time used in the period
	Quota unit.Value[float64] `json:"quota"` // CPUs' worth it may use; unknown = no limit is set
	// Waiting is the share of the period in which at least one of its threads was
	// runnable and had no CPU, whatever the cause: other threads (also its own), or its
	// quota. It is not a sum over threads: one of a hundred that waits all the time makes
	// it 1. Throttled is the share of the quota's periods in which that was used up.
	Waiting   unit.Value[unit.Ratio] `json:"waiting,omitzero"`
	Throttled unit.Value[unit.Ratio] `json:"throttled,omitzero"`
	// MemoryLimit is the least limit of its cgroup and those above; unknown = there is none.
	MemoryLimit unit.Value[unit.Bytes] `json:"memory_limit_bytes,omitzero"`
	// CPUByNode is CPUs' worth of time used on each node's CPUs.
	CPUByNode []unit.Value[float64] `json:"cpu_by_node"`
	// AnonByNode and FileByNode are resident bytes on each node.
	AnonByNode []unit.Value[unit.Bytes] `json:"anon_by_node"`
	FileByNode []unit.Value[unit.Bytes] `json:"file_by_node"`

	// Deltas over the period.
	Cycles       unit.Value[uint64] `json:"cycles"`
	Instructions unit.Value[uint64] `json:"instructions"`
	StallCycles  unit.Value[uint64] `json:"stall_cycles"`
	LocalLoads   unit.Value[uint64] `json:"local_loads"`  // DRAM reads served by the CPU's own node, lines of LineBytes
	RemoteLoads  unit.Value[uint64] `json:"remote_loads"` // DRAM reads served by another node, the same
	// UncoreRequests are requests that left the private caches of its cores (Rao's A),
	// UncoreWaits the cycles with at least one critical one outstanding (W): demand
	// data, instruction or RFO. W/A is the uncore penalty.
	UncoreRequests unit.Value[uint64] `json:"uncore_requests,omitzero"`
	UncoreWaits    unit.Value[uint64] `json:"uncore_waits,omitzero"`
	// LLCMisses are lines that it brought into last-level caches, reads for writing
	// included. They are counted only where UncoreRequests include those, too, so that
	// the two can be compared.
	LLCMisses unit.Value[uint64] `json:"llc_misses,omitzero"`
	// LLC is what it holds in all last-level caches at the end of the period (resctrl's
	// llc_occupancy), bytes.
	LLC unit.Value[unit.Bytes] `json:"llc_bytes,omitzero"`
	// Traffic is what it moved between caches and memory in the period, reads and writes.
	// LocalTraffic is the part of it with the memory of its CPUs' own nodes (resctrl's
	// mbm_total_bytes, mbm_local_bytes).
	Traffic      unit.Value[unit.Bytes] `json:"traffic_bytes,omitzero"`
	LocalTraffic unit.Value[unit.Bytes] `json:"local_traffic_bytes,omitzero"`
	// LocalFaults and RemoteFaults are pages of memory on which the kernel's NUMA
	// balancing recently made its threads fault: a sample of the pages that they touch,
	// not of how often. They are not deltas over the period. The kernel remembers those
	// of the last scan, half of those before, and so on, and scans every 1 to 60 s of a
	// thread's CPU time. Each thread's share on its own node is weighted by its CPU time;
	// the sum of the two is the number of pages behind the figure.
	LocalFaults  unit.Value[uint64] `json:"local_hint_faults,omitzero"`
	RemoteFaults unit.Value[uint64] `json:"remote_hint_faults,omitzero"`
	// Threads are its threads (a VM's vCPUs), ascending by ID, where they are read one by
	// one; nil: they are not.
	Threads []Thread `json:"threads,omitempty"`

	Binding Binding `json:"binding"`
	// Class is its present isolation; nil: none, or unknown.
	Class *action.Class `json:"isolation,omitempty"`
}

// Thread is one thread of a workload in one period; a VM's vCPU is one.
type Thread struct {
	ID int `json:"id"` // TID; positive, of one thread of the host
	// Start is when it started, ticks after boot: TIDs are used again. 0: unknown.
	Start uint64 `json:"start,omitempty"`
	// CPU is the logical CPU that it is on at the end of the period, or was on last.
	CPU unit.Opt[int] `json:"cpu"`
	// Used is CPUs' worth of time, 0 … 1.
	Used unit.Value[float64] `json:"used"`
	// Deltas over the period: see Workload.
	Cycles         unit.Value[uint64] `json:"cycles,omitzero"`
	Instructions   unit.Value[uint64] `json:"instructions,omitzero"`
	UncoreRequests unit.Value[uint64] `json:"uncore_requests,omitzero"`
	UncoreWaits    unit.Value[uint64] `json:"uncore_waits,omitzero"`
	// Allowed is its affinity. Ours: homenode set it, and it is still in force. Pinned:
	// it is narrower than its workload's CPUs, and another process set it.
	Allowed set.CPUSet `json:"allowed"`
	Ours    bool       `json:"ours,omitempty"`
	Pinned  bool       `json:"pinned,omitempty"`
}

// Binding is the present setting of a workload's cgroup.
type Binding struct {
	CPUs set.CPUSet  `json:"cpus"` // effective
	Mems set.NodeSet `json:"mems"` // effective
	// Ours reports that the CPUs, the mems, were set by homenode and still are.
	OursCPUs bool `json:"ours_cpus"`
	OursMems bool `json:"ours_mems"`
	// Pinned reports that another process restricts it: its own cpuset is narrower than
	// its parent's, or its memory has a bind or interleave policy of its own. PinnedWhy
	// says which. homenode respects both.
	PinnedCPUs bool   `json:"pinned_cpus"`
	PinnedMems bool   `json:"pinned_mems"`
	PinnedWhy  string `json:"pinned_why,omitempty"`
}

// Workload returns the workload with that id.
func (w Window) Workload(id string) (Workload, bool) {
	i, ok := w.WorkloadIndex(id)
	if !ok {
		return Workload{}, false
	}
	return w.Workloads[i], true
}

// WorkloadIndex returns the position of a workload in Workloads. A workload is some 700
// bytes, so a caller that asks for each of them in each window avoids copies.
func (w *Window) WorkloadIndex(id string) (int, bool) {
	i := sort.Search(len(w.Workloads), func(i int) bool { return w.Workloads[i].ID >= id })
	return i, i < len(w.Workloads) && w.Workloads[i].ID == id
}

// NodeIndex returns the position of a node in Nodes and in slices by node.
func (w Window) NodeIndex(id int) (int, bool) {
	for i := range w.Nodes {
		if w.Nodes[i].ID == id {
			return i, true
		}
	}
	return 0, false
}
