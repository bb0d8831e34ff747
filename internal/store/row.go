// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"homenode/internal/unit"
)

// Batch is what one host sends at once. Host, Run and Number are its key: a batch with a key
// that the store has is ignored.
type Batch struct {
	Host      string // by its certificate, never by what it says
	Run       string // of the agent: made anew at each start
	Number    uint64 // of the batch in this run, from 1
	Nodes     []Node
	Windows   []Window
	Decisions []Decision
	Outcomes  []Outcome
}

// Node is one NUMA node of a host in one period. Figures are of the period, or at its end.
type Node struct {
	At      time.Time // end of the period
	Length  time.Duration
	Node    int
	CPUs    int               // online
	Busy    unit.Opt[float64] // CPUs' worth of time
	Memory  unit.Opt[unit.Bytes]
	Free    unit.Opt[unit.Bytes]
	Traffic unit.Opt[unit.Bytes] // of its memory controllers

	BusyHow, MemoryHow, TrafficHow unit.Source // how they are known; MemoryHow: Memory and Free
}

// Window is one workload of a host in one period.
type Window struct {
	At       time.Time // end of the period
	Length   time.Duration
	Workload string // its cgroup path; bytes, not text
	Service  string // "": no rule names one
	Owner    string
	Name     string // what its manager calls it; "": unknown
	Approved bool
	Bound    []int // nodes that homenode bound it to; empty: it is not bound

	CPU        unit.Opt[float64] // CPUs' worth of time
	Waiting    unit.Opt[unit.Ratio]
	CPUByNode  []float64 // empty: unknown
	AnonByNode []unit.Bytes
	FileByNode []unit.Bytes

	Cycles, Instructions, Stalls unit.Opt[uint64]
	LocalReads, RemoteReads      unit.Opt[uint64] // DRAM reads
	Traffic                      unit.Opt[unit.Bytes]
	Latency                      unit.Opt[float64] // seconds, as its service says

	// Local is its local access ratio, LocalHow how that is known and LocalFrom by what.
	// A ratio from the lab or a simulator stays modelled.
	Local     unit.Opt[unit.Ratio]
	LocalHow  unit.Source
	LocalFrom string
	MBW       unit.Opt[float64]    // bytes/s
	MSR       unit.Opt[unit.Ratio] // memory stall cycles / cycles
	NPMR      unit.Opt[unit.Ratio] // anon / (anon + file)
	RMBR      unit.Opt[unit.Ratio] // remote / all DRAM reads

	// How the other figures are known: the weakest of those that come from one place.
	CPUHow     unit.Source // CPU and Waiting; CPUByNode if there is neither
	CyclesHow  unit.Source // Cycles, Instructions, Stalls, MSR
	TrafficHow unit.Source // Traffic; MBW if there is none
	LatencyHow unit.Source
	PagesHow   unit.Source // AnonByNode, FileByNode, NPMR
}

// Decision is what a host's policy decided for a workload, or would have in a dry run.
type Decision struct {
	At       time.Time
	Kind     string // "bind", "unbind", "isolate", "escalate", "none", "way"
	Workload string
	Service  string
	Nodes    []int
	DryRun   bool
	Rule     string // the reason's code
	Sentence string // the reason in words, as `homenode why` prints it
}

// Outcome is what became of a step.
type Outcome struct {
	At       time.Time
	Workload string
	Service  string
	Action   string // e.g. "bind /demo/a to nodes 1"
	State    string // "done", "refused", "drifted", …
	Sentence string
}
