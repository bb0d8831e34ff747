// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"time"

	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/harness"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/runner"
)

// Schema is the version of a result's wire form. Readers refuse a newer one.
const Schema = 1

// How figures of a result are known.
const How = harness.How

// Machine is one of a plan.
type Machine struct {
	Name, About string
	Host        machine.Machine
	System      memsys.System
}

// Mix is a set of workloads for any machine, or for some.
type Mix struct {
	Name, About string
	// Fits says whether it can be on a machine; nil: on any.
	Fits func(m *Machine) bool
	// Specs are its workloads. Seeds may draw what they are and when they come.
	Specs func(m *Machine, seed uint64) []sim.Spec
	// Lasts of which Warmup is in no figure; Step is the world's. Each Period the books
	// are written: it is the period of percentiles, and of policies that have none of
	// their own (see Plan.Periods).
	Lasts, Warmup, Period, Step time.Duration
}

// Plan is what to run: all of each with all of the others.
type Plan struct {
	Name, About string
	Machines    []Machine
	Mixes       []Mix
	// Policies are arm's names. One with a suffix after a colon, as "brm:strict", is the
	// same policy another time, with other Options.
	Policies []string
	Against  string // the policy that others are compared with
	Seeds    []uint64
	// Periods are how often policies look and act, by name as above, and Abouts what is
	// said of them; of those that are missing, PeriodOf's and arm's.
	Periods map[string]time.Duration
	Abouts  map[string]string
	// Options changes what a policy is given, which is the defaults of all (see
	// DefaultOptions); nil: nothing is changed. It is called from several workers.
	Options func(policy string, m *Machine, o *runner.Options)
	// Actuate changes how policies act, which is actuate's defaults; nil: nothing is changed.
	Actuate func(policy string, c *actuate.Config)
	// Configure changes a world at its start, after runner.Prepare; nil: nothing is changed.
	Configure func(policy string, c *sim.Config)
	// World makes one; nil: of single threads (threads.NewWorld).
	World func(c sim.Config) (World, error)
}

// Cell is one run. All of its figures are modelled.
type Cell struct {
	Machine string `json:"machine"`
	Mix     string `json:"mix"`
	Policy  string `json:"policy"`
	Seed    uint64 `json:"seed"`
	Apps    []App  `json:"apps"` // by workload ID
	// Moves are of threads from node to node by the policy's doing, and of bindings; of
	// the whole run, warm-up included, as are those below up to MoverCPU.
	Moves      int     `json:"moves"`
	Pins       int     `json:"pins"`    // of Moves, threads
	Binds      int     `json:"binds"`   // of Moves, workloads, with their memory
	Asides     int     `json:"asides"`  // of Moves, workloads, CPUs only
	Unbinds    int     `json:"unbinds"` // of Moves
	MovedB     float64 `json:"moved_bytes"`
	Refused    int     `json:"refused"`     // steps
	MoverCPU   float64 `json:"mover_cpu_s"` // that moving memory took
	LocalRatio float64 `json:"local_ratio"` // of DRAM reads; 0 of none
	CPUSeconds float64 `json:"cpu_seconds"`
}

// App is one workload of a cell.
type App struct {
	ID      string  `json:"id"`
	Service string  `json:"service"` // the application
	Threads int     `json:"threads"`
	Rated   bool    `json:"rated,omitempty"` // requests come by themselves: Ops is what was asked, at best
	Ops     float64 `json:"ops_per_s"`       // operations a second that it was there
	// P99S is the 99th percentile of the time that an operation takes, over threads and
	// periods; of requests, of their latency.
	P99S       float64 `json:"p99_s"`
	CPUPerOp   float64 `json:"cpu_s_per_op"`
	LocalRatio float64 `json:"local_ratio"`
	IPC        float64 `json:"ipc"`
	MPI        float64 `json:"mpi"`      // DRAM reads an instruction
	Penalty    float64 `json:"penalty"`  // uncore penalty W/A, cycles
	Fairness   float64 `json:"fairness"` // least / most CPU time of its threads; 1 of one, and where none ran
}

// Result is what came of a plan.
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

// Named is a thing and what it is.
type Named struct {
	Name  string `json:"name"`
	About string `json:"about"`
	From  string `json:"from,omitempty"` // of a machine: where its figures come from
	Nodes int    `json:"nodes,omitempty"`
	CPUs  int    `json:"cpus,omitempty"`
	// PeriodS is how often a policy looks and acts; 0: it never acts.
	PeriodS float64 `json:"period_s,omitempty"`
	// Of a mix: how long, of which a warm-up is in no figure, in which steps.
	LastsS  float64 `json:"lasts_s,omitempty"`
	WarmupS float64 `json:"warmup_s,omitempty"`
	StepS   float64 `json:"step_s,omitempty"`
}
