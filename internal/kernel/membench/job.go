// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Job is one measured piece of work: buffers, and threads that use them at the
// same time.
type Job struct {
	Buffers []Buffer
	Threads []Thread
	// Length of the measured stretch, in time of the prober's clock. A thread reads the
	// clock every few hundred lines.
	Length time.Duration
	// Warm is work before the measured stretch: it fills the caches and reaches the
	// steady state of queues. 0 = none.
	Warm time.Duration
	// Laps is the number of times that a chasing thread passes its whole cycle before
	// it is measured, however long that takes. 0 = as often as Warm allows.
	Laps int
}

// Policy is a memory policy.
type Policy = unix.MemPolicy

// The policies; see kernel/unix.
const (
	Local              = unix.PolicyLocal
	Bind               = unix.PolicyBind
	Preferred          = unix.PolicyPreferred
	PreferredMany      = unix.PolicyPreferredMany
	Interleave         = unix.PolicyInterleave
	WeightedInterleave = unix.PolicyWeightedInterleave
)

// Buffer is memory of one policy, touched before anything is measured.
type Buffer struct {
	Bytes  unit.Bytes
	Policy Policy      // "" = bind
	Nodes  set.NodeSet // of the policy
	// TouchCPU is the CPU of the first touch; with local it decides the node.
	TouchCPU int
	Huge     bool // transparent huge pages asked for; otherwise forbidden
}

// Work is the work of a thread.
type Work string

// Kinds of work. An op is one 64-byte line; for Chase it is one load.
const (
	Chase Work = "chase" // dependent loads over a random cycle of all lines
	Read  Work = "read"  // lines in order
	Write Work = "write" // lines in order, stored
	Copy  Work = "copy"  // first half of the buffer to the second; an op is a line read and written
	Mixed Work = "mixed" // Thread.Reads lines read, then Thread.Writes stored, in order
	// Transfer chases lines that the CPU Thread.Owner has just stored to: they are
	// dirtied again every lap, and only the chase is timed.
	Transfer Work = "transfer"
)

// Thread is one thread of a job.
type Thread struct {
	CPU    int
	Work   Work
	Buffer int // index; threads with the same buffer of sequential work take a part of it each
	Reads  int // Mixed
	Writes int
	Pause  int // instructions of waiting, after every line (every load of Chase)
	Owner  int // Transfer: the CPU that dirties the lines
	// Shared is the index of a buffer: every AddEvery ops, a random line of it gets one
	// atomic add; AddEvery 0 = none.
	Shared   int
	AddEvery int
	Count    bool // its hardware counters are wanted
}

// Result of a job; Threads as in the job.
type Result struct {
	Threads []ThreadResult
}

// ThreadResult is what one thread did in the measured stretch.
type ThreadResult struct {
	Ops     uint64
	Bytes   uint64        // read and written
	Elapsed time.Duration // by the prober's clock; for a staged one, by its Work
	Whole   time.Duration // the same with kernel-mode time
	// Quiet is Elapsed without interruptions and without the clock reads: Ops at the
	// median pace of all batches. A tick of the kernel takes 3,000 cycles in the lab, 1
	// to 5 % of all time; on hardware it is the bursts of other programs.
	Quiet time.Duration
	// Counters that were requested, and available, in user mode.
	Cycles       unit.Opt[float64] // busy core cycles
	Instructions unit.Opt[float64]
	L2Misses     unit.Opt[float64]
	LLCMisses    unit.Opt[float64]
	Requests     unit.Opt[float64] // uncore requests: A
	Outstanding  unit.Opt[float64] // O
	Critical     unit.Opt[float64] // W
}

// Move asks for pages to be moved.
type Move struct {
	From, To int // nodes
	Bytes    unit.Bytes
	Huge     bool
	CPU      int // that calls move_pages
}

// Moved is the result.
type Moved struct {
	Pages   int // that are on To now
	Failed  int
	Size    unit.Bytes // of a page
	Elapsed time.Duration
}

// Clock is the source of times. The machine's is the monotonic clock; in the lab it is
// the model's.
type Clock interface {
	// Now is the time on a CPU; only differences mean something. It is called from a
	// thread that runs there.
	Now(cpu int) time.Duration
	// Name in words: "monotonic clock", "model clock of the lab, 50 cycles a µs".
	Name() string
	// How: measured, or modelled.
	How() unit.Source
}

// Conditions decide how far figures can be trusted; they are read at one moment.
type Conditions struct {
	CPUModel    string
	Hypervisor  string                  // "" = none seen
	Busy        unit.Opt[time.Duration] // CPU time of all CPUs that was not idle, since boot
	Throttled   unit.Opt[uint64]        // thermal throttle events of all cores, ever
	Governor    string                  // of CPU 0; "" = unknown
	Balancing   unit.Opt[bool]          // NUMA balancing is on
	HugeAllowed unit.Opt[bool]          // transparent huge pages can be asked for
}
