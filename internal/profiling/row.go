// SPDX-License-Identifier: Apache-2.0

package profiling

import "homenode/internal/model"

// RowSchema is the version of Row's columns.
const RowSchema = 1

// Row is one workload in one placement, as python/homenode_model reads it. nil is unknown.
type Row struct {
	Application string `parquet:"application,dict"`
	Kind        string `parquet:"kind,dict"`
	Workload    string `parquet:"workload,dict"` // an application with one input
	Source      string `parquet:"source,dict"`   // Measured, Lab or Simulator
	// Placement is the index in homenode placements of this machine and number of vCPUs.
	Placement int32  `parquet:"placement"`
	Nodes     string `parquet:"nodes,dict"`
	CPUs      string `parquet:"cpus,dict"`
	NodeCount int32  `parquet:"node_count"`
	Scores    string `parquet:"scores,dict"` // "concern=value", by spaces

	// Operations per second of all threads: measured twice. Of a simulated workload with the
	// lab's noise, and also without.
	Speed      float64  `parquet:"ops_per_s"`
	SpeedAgain float64  `parquet:"ops_per_s_again"`
	SpeedTrue  *float64 `parquet:"ops_per_s_true,optional"`

	// Features of a window there (fleet.Row). The columns are not a structure of their own:
	// parquet-go 0.32 reads a null in one as 0.
	MBW     *float64 `parquet:"mbw_bytes_per_s,optional"`
	MSR     *float64 `parquet:"msr_ratio,optional"`
	NPMR    *float64 `parquet:"npmr_ratio,optional"`
	RMBR    *float64 `parquet:"rmbr_ratio,optional"`
	CPU     *float64 `parquet:"cpu_cpus,optional"`
	RSS     *float64 `parquet:"rss_bytes,optional"`
	IPC     *float64 `parquet:"ipc_instructions_per_cycle,optional"`
	LLCMPKI *float64 `parquet:"llc_misses_per_kilo_instruction,optional"`
}

// Features are a row's, as a state keeps them.
type Features struct {
	MBW     *float64 `json:"mbw_bytes_per_s,omitempty"`
	MSR     *float64 `json:"msr_ratio,omitempty"`
	NPMR    *float64 `json:"npmr_ratio,omitempty"`
	RMBR    *float64 `json:"rmbr_ratio,omitempty"`
	CPU     *float64 `json:"cpu_cpus,omitempty"`
	RSS     *float64 `json:"rss_bytes,omitempty"`
	IPC     *float64 `json:"ipc_instructions_per_cycle,omitempty"`
	LLCMPKI *float64 `json:"llc_misses_per_kilo_instruction,omitempty"`
}

func (r *Row) set(f Features) {
	r.MBW, r.MSR, r.NPMR, r.RMBR = f.MBW, f.MSR, f.NPMR, f.RMBR
	r.CPU, r.RSS, r.IPC, r.LLCMPKI = f.CPU, f.RSS, f.IPC, f.LLCMPKI
}

// Where rows come from. A model that was trained on them says so.
const (
	Measured  = model.Measured
	Lab       = model.Lab
	Simulator = model.Simulator
)

// Keys of the file's metadata.
const (
	KeySchema     = "homenode.schema"
	KeySource     = "homenode.source"
	KeyCommit     = "homenode.commit"
	KeyCommand    = "homenode.command"
	KeyGenerator  = "homenode.generator_version"
	KeySeed       = "homenode.seed"
	KeyMachine    = "homenode.machine"
	KeyVCPUs      = "homenode.vcpus"
	KeyPlacements = "homenode.placements"
	KeyLinks      = "homenode.links"
	KeyHow        = "homenode.how"
	KeyMetric     = "homenode.metric"
)
