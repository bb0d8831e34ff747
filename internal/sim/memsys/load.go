// SPDX-License-Identifier: Apache-2.0

package memsys

// Load is what one workload does on the CPUs of one domain. A workload that runs
// in several domains has a Load in each, with the same Workload.
type Load struct {
	Workload int     // which workload: loads of one share their regions and their added lines
	Domain   int     // index into System.Domains
	CPUs     float64 // CPUs' worth of time it can have there, at most
	Threads  float64 // threads that take turns on them; at least CPUs
	// Ops is the requested operations per second, at most; +Inf: as many as it can do.
	Ops  float64
	Work *Work
	// Home[m] is the share of its DRAM accesses to regions that go to node m's memory; the
	// sum is 1. Shared is the same for the lines it adds to; nil: as Home.
	Home, Shared []float64
	// Cache is the share of its domain's LLC that it may hold. Bandwidth is the share of
	// what its node's memory serves that all its CPUs there together may request, from any
	// node. 0: no limit. See isolated.go.
	Cache, Bandwidth float64
	// Slow is a factor on all of its cycles: the time that the operating system takes while
	// it runs (page faults, moving). 1: none.
	Slow float64
	// Before is the cycles of an operation to start with; 0: those of the load in its place
	// the last time, or as if alone. The result does not depend on it.
	Before float64
}

// Work is one operation of a workload.
type Work struct {
	Cycles       float64 // without any wait for memory, alone on its core
	Instructions float64
	Regions      []Region
	Adds         float64 // locked read-modify-writes of shared lines
	Lines        float64 // shared lines that the adds go to, each as likely as any other
}

// Region is memory with one kind of access, uniformly at random or from end to end.
type Region struct {
	Bytes float64
	// Shared: all threads of the workload use the same memory; else each has Bytes of its
	// own.
	Shared   bool
	Accesses float64 // per operation, those that miss L1
	// Parallelism is how many of its accesses are outstanding at once, hits and misses alike:
	// 1 is a pointer chase. A core may bound it (overlap.go).
	Parallelism float64
	// Stream: in laps, each line once per lap, in any order: from end to end, or as the
	// lab's chase goes over one cycle of all lines (a Stream with a Parallelism of 1). A
	// smaller L2 does not help, and an LLC helps little: it misses 1 - exp(-1/x), where a
	// region read at random misses 1/(1+x) (caches.go).
	Stream bool
	// Writes is the share of the lines brought into a core's caches that it modifies. An
	// LLC that drops such a line writes it back.
	Writes float64
}

// Result is one steady state.
type Result struct {
	Loads   []LoadResult // parallel to the loads
	Nodes   []ServerResult
	Links   []ServerResult
	Fabrics []ServerResult // by domain
	Rounds  int            // rounds of iteration
	Residue float64        // the largest relative change of cycles/op in the last round
}

// LoadResult is the result of a Load, per operation unless the line says otherwise.
type LoadResult struct {
	Cycles float64 // in total
	Stall  float64 // those spent waiting for memory beyond L1
	Ops    float64 // per second, all its threads there together
	CPUs   float64 // CPUs' worth of time that it used: ≤ Load.CPUs
	// DRAM[m] are its reads from node m's memory, Writebacks[m] the lines it wrote back.
	DRAM, Writebacks []float64
	L2Misses         float64
	Transfers        float64 // lines that came from another core
	LLC              float64 // bytes of the domain's LLC that it holds
	Latency          float64 // mean cycles of a DRAM read
}

// ServerResult is the state of a controller, a link or a fabric.
type ServerResult struct {
	Lines       float64 // per cycle
	Utilisation float64 // 0 … 1; 0 where no limit is known
	Wait        float64 // cycles that a line waits
}
