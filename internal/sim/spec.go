// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Spec is a workload: what it does, what it needs, and what it may use. All of its threads
// are alike.
type Spec struct {
	Name    string `yaml:"name" json:"name"`       // its ID is "/" + Name; replicas get "-1", "-2", …
	Service string `yaml:"service" json:"service"` // what it is a replica of; "": Name
	// Owner is the manager of its cgroup, e.g. "systemd": then no step is taken for it. "":
	// none.
	Owner    string `yaml:"owner" json:"owner"`
	Replicas int    `yaml:"replicas" json:"replicas"`
	Threads  int    `yaml:"threads" json:"threads"`
	// CPULimit is cpu.max, in CPUs; 0: none.
	CPULimit float64 `yaml:"cpu_limit" json:"cpu_limit"`
	// CPURequest is the promised CPU, in CPUs, which it may exceed. Where there is no
	// limit, the window shows it as the quota: MAO gets a container's from the cluster.
	CPURequest float64 `yaml:"cpu_request" json:"cpu_request"`
	Approved   bool    `yaml:"approved" json:"approved"` // the offline side says that binding pays
	// Sensitive is the operator's word on whether it matters where its threads run (Rao's
	// tag); nil: not given.
	Sensitive *bool      `yaml:"numa_sensitive" json:"numa_sensitive,omitempty"`
	Target    unit.Ratio `yaml:"target_local_ratio" json:"target_local"` // local access ratio it should have; 0: the policy's own
	Memory    MemorySpec `yaml:"memory" json:"memory"`
	Work      WorkSpec   `yaml:"work" json:"work"`
	Demand    DemandSpec `yaml:"demand" json:"demand"`
	Start     StartSpec  `yaml:"start" json:"start"`
	// It is present from Arrive to Depart (0: to the end), counted from the start.
	Arrive time.Duration `yaml:"arrive" json:"arrive_ns"`
	Depart time.Duration `yaml:"depart" json:"depart_ns"`
	// Phases follow each other in a cycle; each changes what it names. None: always the
	// same.
	Phases []PhaseSpec `yaml:"phases" json:"phases"`
}

// MemorySpec is what a workload holds. Sizes are for the whole workload.
type MemorySpec struct {
	Private unit.Bytes `yaml:"private" json:"private_bytes"` // used by single threads, each its own part
	Shared  unit.Bytes `yaml:"shared" json:"shared_bytes"`   // used by all threads alike
	Files   unit.Bytes `yaml:"files" json:"files_bytes"`     // mapped
	Cache   unit.Bytes `yaml:"cache" json:"cache_bytes"`     // page cache that no process maps
	// PrivateAccesses is the share of its DRAM accesses that go to private memory. The rest
	// goes to shared memory and mapped files by size. nil, or -1: as its regions read,
	// private regions private memory, shared regions the rest.
	PrivateAccesses *float64 `yaml:"private_accesses" json:"private_accesses"`
	// Growth of anonymous memory, bytes per hour, up to twice the start's; growth of page
	// cache, until there is no more room. 0: none.
	Growth      unit.Bytes `yaml:"growth_per_hour" json:"growth_bytes_per_hour"`
	CacheGrowth unit.Bytes `yaml:"cache_growth_per_hour" json:"cache_growth_bytes_per_hour"`
	// Churn is the share of its anonymous memory that is freed and touched anew, per hour.
	Churn float64 `yaml:"churn_per_hour" json:"churn_per_hour"`
	// Toucher is what first touches shared memory: "main" (one thread, the default) or
	// "workers" (all threads, where they run).
	Toucher string `yaml:"toucher" json:"toucher"`
}

// WorkSpec is one operation: a request, or one round of a loop.
type WorkSpec struct {
	Cycles       float64      `yaml:"cycles" json:"cycles"` // without waiting for memory
	Instructions float64      `yaml:"instructions" json:"instructions"`
	Regions      []RegionSpec `yaml:"regions" json:"regions"`
	Adds         float64      `yaml:"adds" json:"adds"` // locked adds to lines that all its threads share
	Lines        float64      `yaml:"lines" json:"lines"`
	// Barrier is the number of operations of each thread after which all threads wait for
	// the slowest; 0: never. Only for closed loops that do not think.
	Barrier int `yaml:"barrier" json:"barrier"`
	// Spin: they wait spinning, which takes CPU time and retires one instruction per cycle;
	// else they sleep.
	Spin bool `yaml:"spin" json:"spin"`
}

// RegionSpec is memory with one kind of access (memsys.Region).
type RegionSpec struct {
	Size        unit.Bytes `yaml:"size" json:"size_bytes"` // per thread; of all threads together if shared
	Shared      bool       `yaml:"shared" json:"shared"`
	Accesses    float64    `yaml:"accesses" json:"accesses"` // per operation, beyond L1
	Parallelism float64    `yaml:"parallelism" json:"parallelism"`
	Stream      bool       `yaml:"stream" json:"stream"`
	Writes      float64    `yaml:"writes" json:"writes"`
}

// DemandSpec is the demand on a workload. Rate 0: a closed loop, where every thread does
// one operation after the other, thinking in between.
type DemandSpec struct {
	Rate   float64       `yaml:"rate" json:"rate"` // requests per second at the peak of the day
	Think  time.Duration `yaml:"think" json:"think_ns"`
	Low    float64       `yaml:"low" json:"low"`       // share of the rate at the bottom of the day; 0: always the full rate
	Peak   time.Duration `yaml:"peak" json:"peak_ns"`  // hour of the day of the peak, e.g. 20h
	Noise  float64       `yaml:"noise" json:"noise"`   // relative deviation, over minutes
	Spread float64       `yaml:"spread" json:"spread"` // squared coefficient of variation of an operation's work; 0: 1
	Queue  int           `yaml:"queue" json:"queue"`   // requests that may wait; more are dropped; 0: 64 per thread
	Wakes  float64       `yaml:"wakes" json:"wakes"`   // wake-ups per operation, of any thread; -1: 1 with a rate, else 0
	Bursts float64       `yaml:"bursts" json:"bursts"` // arrivals' squared coefficient of variation; 0: 1
}

// StartSpec is how a workload is started: what an operator does with taskset and numactl.
// Sets are of the machine's ids.
type StartSpec struct {
	// CPUs is a cpuset.cpus that another process set; empty: none. Windows show it as
	// pinned.
	CPUs       set.CPUSet  `yaml:"cpus" json:"cpus"`
	Pinned     bool        `yaml:"pinned" json:"pinned"`         // threads are tied to these CPUs one by one
	Bind       set.NodeSet `yaml:"bind" json:"bind"`             // nodes of its memory; empty: first touch
	Interleave set.NodeSet `yaml:"interleave" json:"interleave"` // nodes of its memory
	// Touch is where its memory was first touched, if not where it runs.
	Touch set.NodeSet `yaml:"touch" json:"touch"`
}

// PhaseSpec is a period of a workload's life. A field that is 0 changes nothing.
type PhaseSpec struct {
	Lasts    time.Duration `yaml:"lasts" json:"lasts_ns"`
	Rate     float64       `yaml:"rate" json:"rate"`         // factor on the demand
	Accesses float64       `yaml:"accesses" json:"accesses"` // factor on accesses per operation
	Cycles   float64       `yaml:"cycles" json:"cycles"`     // factor on cycles per operation
}
