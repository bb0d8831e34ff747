// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/sim"

	"homenode/internal/sim/memsys"
	"homenode/internal/sim/runner"
)

// Schema is the version of a result's wire form. Readers refuse a newer one.
const Schema = 1

// How is the source of a result's figures.
const How = runner.How

// Machine is a machine of a plan.
type Machine struct {
	Name, About string
	Host        machine.Machine
	System      memsys.System
}

// Mix is a set of workloads for any machine, or for some.
type Mix struct {
	Name, About string
	// Fits reports whether the mix can run on a machine; nil: on any.
	Fits func(m *Machine) bool
	// Specs are its workloads. Seeds may draw which they are and when they arrive.
	Specs func(m *Machine, seed uint64) []sim.Spec
	// Lasts includes Warmup, which is in no figure; Step is the world's. The books are
	// written each Period: it is the period of percentiles, and of policies without one of
	// their own (see Plan.Periods).
	Lasts, Warmup, Period, Step time.Duration
}

// Plan is what to run: each machine, mix, policy and seed with all others.
type Plan struct {
	Name, About string
	Machines    []Machine
	Mixes       []Mix
	// Policies are arm's names. A name with a suffix after a colon, such as "brm:strict",
	// is the same policy again, with other Options.
	Policies []string
	Against  string // the policy that others are compared with
	Seeds    []uint64
	// Periods are how often policies read a window and act, by name as above; Abouts
	// describes them. What is missing comes from PeriodOf and arm.
	Periods map[string]time.Duration
	Abouts  map[string]string
	// Options changes what a policy is given, which is the defaults of all (see
	// DefaultOptions); nil: no change. Several workers call it.
	Options func(policy string, m *Machine, o *runner.Options)
	// Actuate changes how policies act, by default actuate's; nil: no change.
	Actuate func(policy string, c *actuate.Config)
	// Configure changes a world at its start, after runner.Prepare; nil: no change.
	Configure func(policy string, c *sim.Config)
	// World makes a world; nil: of single threads (threads.NewWorld).
	World func(c sim.Config) (World, error)
}

// Cell is one run. All of its figures are modelled.
type Cell struct {
	Machine string `json:"machine_name"`
	Mix     string `json:"mix"`
	Policy  string `json:"policy"`
	Seed    uint64 `json:"seed"`
	Apps    []App  `json:"apps"` // by workload ID
	// Moves counts threads that the policy moved from node to node, and bindings, over the
	// whole run, warm-up included. So do the counts below, up to MoverCPU.
	Moves      int     `json:"moves"`
	Pins       int     `json:"pins"`    // those of Moves that are threads
	Binds      int     `json:"binds"`   // those that are workloads with their memory
	Asides     int     `json:"asides"`  // those that are CPUs of workloads only
	Unbinds    int     `json:"unbinds"` // those that undo a binding
	MovedB     float64 `json:"moved_bytes"`
	Refused    int     `json:"refused"`     // steps
	MoverCPU   float64 `json:"mover_cpu_s"` // CPU seconds that moving memory took
	LocalRatio float64 `json:"local_ratio"` // local share of DRAM reads; 0 without reads
	CPUSeconds float64 `json:"cpu_seconds"`
}

// App is one workload of a cell.
type App struct {
	ID      string  `json:"id"`
	Service string  `json:"service"` // the application
	Threads int     `json:"thread_count"`
	Rated   bool    `json:"rated,omitempty"` // requests come at a rate: Ops is at most that rate
	Ops     float64 `json:"ops_per_s"`       // operations per second of its presence
	// P99S is the 99th percentile of the time that an operation takes, over threads and
	// periods; for requests, of their latency.
	P99S       float64 `json:"p99_s"`
	CPUPerOp   float64 `json:"cpu_s_per_op"`
	LocalRatio float64 `json:"local_ratio"`
	IPC        float64 `json:"ipc"`
	MPI        float64 `json:"mpi"`      // DRAM reads per instruction
	Penalty    float64 `json:"penalty"`  // uncore penalty W/A, cycles
	Fairness   float64 `json:"fairness"` // least / most CPU time of its threads; 1 with one thread, and where none ran
}

// Result is the result of a plan.
type Result struct {
	Schema   int      `json:"schema"`
	How      string   `json:"how"` // always "modelled"
	Name     string   `json:"name"`
	About    string   `json:"about"`
	Machines []Named  `json:"machines"`
	Mixes    []Named  `json:"mixes"`
	Policies []Named  `json:"policies"`
	Against  string   `json:"against"`
	Seeds    []uint64 `json:"seeds"`
	Cells    []Cell   `json:"cells"` // machine by machine, mix by mix, policy by policy, seed by seed
	Rows     []Row    `json:"rows,omitempty"`
}

// Named is a name with a description.
type Named struct {
	Name  string `json:"name"`
	About string `json:"about"`
	From  string `json:"from,omitempty"` // for a machine: the source of its figures
	Nodes int    `json:"node_count,omitempty"`
	CPUs  int    `json:"cpu_count,omitempty"`
	// PeriodS is how often a policy reads a window and acts; 0: it never acts.
	PeriodS float64 `json:"period_s,omitempty"`
	// For a mix: its length, the warm-up that is in no figure, and its steps.
	LastsS  float64 `json:"lasts_s,omitempty"`
	WarmupS float64 `json:"warmup_s,omitempty"`
	StepS   float64 `json:"step_s,omitempty"`
}
