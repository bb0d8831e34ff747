// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"homenode/internal/unit"
)

// Plan is the host's request to the guest: one run of one arm.
type Plan struct {
	Mix    Mix    `json:"mix"`
	Arm    string `json:"arm"`
	Repeat int    `json:"repeat"`
	// Agent is the agent's configuration file in the guest (arm homenode).
	Agent string `json:"agent"`
	// CPUs for the workloads; Housekeeping for daemons and this runner.
	CPUs         string   `json:"cpus"`
	Housekeeping string   `json:"housekeeping"`
	NodeCPUs     []string `json:"node_cpus"` // of each node, without housekeeping
}

// RunResult is the result of one run. Unknown figures are null.
type RunResult struct {
	Arm    string `json:"arm"`
	Repeat int    `json:"repeat"`

	HostSeconds   float64   `json:"host_s"`        // time of the host, by the wall clock
	HostAround    float64   `json:"host_around_s"` // part of it before the warm-up and after the measurement
	WarmupSeconds float64   `json:"warmup_model_s"`
	WarmupRatios  []float64 `json:"warmup_ratios"` // every checkEvery
	Steady        bool      `json:"steady"`        // the last of them lie close together
	ModelSeconds  float64   `json:"measure_model_s"`

	Services []ServiceResult `json:"services"`

	PagesMoved      unit.Opt[float64] `json:"pages_moved"`      // warm-up and measurement, all movers (pgmigrate_success)
	MoverCPUSeconds unit.Opt[float64] `json:"mover_cpu_s"`      // of the daemon, warm-up and measurement
	MoverCPUShare   unit.Opt[float64] `json:"mover_cpu_share"`  // of one CPU, while measuring
	Acted           bool              `json:"acted"`            // the arm's mover did something
	Detail          string            `json:"detail,omitempty"` // what it did
}

// ServiceResult is one workload in one run's measurement.
type ServiceResult struct {
	Name             string            `json:"name"`
	Kind             string            `json:"kind"`
	Work             float64           `json:"work"` // operations
	WorkPerModelS    float64           `json:"ops_per_model_s"`
	CyclesPerOp      unit.Opt[float64] `json:"cycles_per_op"`
	LocalAccessRatio unit.Opt[float64] `json:"local_access_ratio"`
	LocalLoads       unit.Opt[float64] `json:"local_loads"`
	RemoteLoads      unit.Opt[float64] `json:"remote_loads"`
	CPU              unit.Opt[float64] `json:"cpus"`
	LatencyP50us     unit.Opt[float64] `json:"latency_p50_us"`
	LatencyP99us     unit.Opt[float64] `json:"latency_p99_us"`
}
