// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"homenode/internal/unit"
)

// Samples are memory accesses that the PMU sampled, folded. Why is set when there are
// none.
type Samples struct {
	How    unit.Source `json:"how"`
	From   string      `json:"from,omitempty"` // which events, which period
	Why    string      `json:"why,omitempty"`  // why there are none
	Loads  uint64      `json:"loads"`
	Stores uint64      `json:"stores"`
	Lost   uint64      `json:"lost"`
	// Places are the mappings that samples fell into, those with most loads from
	// DRAM first.
	Places []Place `json:"places,omitempty"`
	// Lines are cache lines that CPUs of several nodes touched and at least one
	// wrote, most written first.
	Lines []Line `json:"lines,omitempty"`
}

// Place is a mapping and how it was accessed. Slices by node are parallel to
// Snapshot.Nodes and count samples.
type Place struct {
	PID      int      `json:"pid"`
	Workload string   `json:"workload"`
	Name     string   `json:"name"`    // of the process
	Mapping  string   `json:"mapping"` // "[heap]", a path, "anon 7f32…"
	Start    uint64   `json:"start"`
	Loads    []uint64 `json:"loads_by_cpu_node"`  // sampled loads, by the CPU's node
	Remote   []uint64 `json:"remote_by_cpu_node"` // of these: served by another node's memory or cache
	Stores   []uint64 `json:"stores_by_cpu_node"`
	// Common is the share of loads at addresses where several threads load: 1 for a
	// table that all of them read, 0 where each has its own part. Unknown: too few
	// samples.
	Common unit.Opt[unit.Ratio] `json:"common"`
	// Pages, Written and Changes are of the part where several threads load: the number of
	// pages (4 KiB) that samples fell into, the number of these that a sampled store fell
	// into, and the number of such stores. What one thread alone uses is not in them: the
	// kernel joins a thread's stack with a table that lies beside it, and a mapping may hold
	// both. 0 where Common is unknown.
	Pages   int    `json:"pages_common"`
	Written int    `json:"pages_common_written"`
	Changes uint64 `json:"stores_common"`
	// Latency is the mean of the sampled loads, in cycles.
	Latency unit.Opt[float64] `json:"load_cycles"`
	// Functions are where the accesses were made, most first.
	Functions []Function `json:"functions,omitempty"`
}

// Function is a place in a program.
type Function struct {
	Name    string `json:"name"` // symbol, or "program+0x1234" without symbols
	Samples uint64 `json:"sample_count"`
	Writes  uint64 `json:"writes"`
}

// LineUser is a process that uses a line.
type LineUser struct {
	PID      int    `json:"pid"`
	Workload string `json:"workload"`
	Samples  uint64 `json:"sample_count"`
}

// Line is a cache line, or with Bytes = 4096 a page, that several nodes use.
type Line struct {
	PID      int        `json:"pid"`
	Workload string     `json:"workload"`
	Addr     uint64     `json:"addr"`
	Bytes    unit.Bytes `json:"bytes"`
	Mapping  string     `json:"mapping"`
	Loads    []uint64   `json:"loads_by_cpu_node"`
	Stores   []uint64   `json:"stores_by_cpu_node"`
	// Modified is the number of these that took the line out of another CPU's cache,
	// which had changed it (HITM). 0 may also mean that the PMU does not show it.
	Modified uint64 `json:"modified,omitempty"`
	// Writers is the number of threads that wrote it: one thread that moves between
	// nodes does not share its line.
	Writers int `json:"writers"`
	// Users are the processes of these samples, most first, if there are several:
	// memory that processes share is one line. Empty: all are of PID.
	Users     []LineUser `json:"users,omitempty"`
	Functions []Function `json:"functions,omitempty"`
}
