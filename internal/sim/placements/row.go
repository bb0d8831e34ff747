// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/sim/catalog"
	"homenode/internal/sim/fleet"
	"homenode/internal/unit"
)

// RowSchema is the version of Row's columns.
const RowSchema = 1

// Row is one workload in one placement. nil is unknown.
type Row struct {
	Application string `parquet:"application,dict"`
	Kind        string `parquet:"kind,dict"`
	Workload    string `parquet:"workload,dict"` // an application with one input
	// Placement is the index in homenode placements of this machine and number of vCPUs.
	Placement int32  `parquet:"placement"`
	Nodes     string `parquet:"nodes,dict"`
	CPUs      string `parquet:"cpus,dict"`
	NodeCount int32  `parquet:"node_count"`
	Scores    string `parquet:"scores,dict"` // "concern=value", by spaces

	// Operations per second of all threads: measured twice, with the lab's noise, and
	// without noise.
	Speed      float64 `parquet:"ops_per_s"`
	SpeedAgain float64 `parquet:"ops_per_s_again"`
	SpeedTrue  float64 `parquet:"ops_per_s_true"`

	// Features of a window there, with the lab's noise (fleet.Row).
	MBW     *float64 `parquet:"mbw_bytes_per_s,optional"`
	MSR     *float64 `parquet:"msr_ratio,optional"`
	NPMR    *float64 `parquet:"npmr_ratio,optional"`
	RMBR    *float64 `parquet:"rmbr_ratio,optional"`
	CPU     *float64 `parquet:"cpu_cpus,optional"`
	RSS     *float64 `parquet:"rss_bytes,optional"`
	IPC     *float64 `parquet:"ipc_instructions_per_cycle,optional"`
	LLCMPKI *float64 `parquet:"llc_misses_per_kilo_instruction,optional"`
}

// Keys of the file's metadata that a fleet's data set does not have.
const (
	KeySource     = "homenode.source"
	KeyCommit     = "homenode.commit"
	KeyVCPUs      = "homenode.vcpus"
	KeyPlacements = "homenode.placements"
	KeyLinks      = "homenode.links"
)

// Source is where rows come from. A model that was trained on them says so.
const Source = "simulator"

// About is what a file says about how it was made.
type About struct {
	Commit  string // version of the program
	Command string // makes it again
}

// NewTable starts a data set. metadata is in this order: a file's bytes depend on it.
func NewTable(to io.Writer, c Config, about About) (*fleet.Table[Row], error) {
	noise, err := c.Noise.Measured()
	if err != nil {
		noise = "none: unmeasured"
	}
	metadata := []fleet.KeyValue{
		{Key: fleet.KeySchema, Value: strconv.Itoa(RowSchema)},
		{Key: KeySource, Value: Source},
		{Key: KeyCommit, Value: about.Commit},
		{Key: fleet.KeyCommand, Value: about.Command},
		{Key: fleet.KeyGenerator, Value: strconv.Itoa(catalog.SharersVersion)},
		{Key: fleet.KeySeed, Value: strconv.FormatUint(c.Seed, 10)},
		{Key: fleet.KeyMachine, Value: c.Name},
		{Key: KeyVCPUs, Value: strconv.Itoa(c.VCPUs)},
		{Key: KeyPlacements, Value: strconv.Itoa(len(c.list.Placements))},
		{Key: KeyLinks, Value: c.list.Links},
		{Key: fleet.KeyHow, Value: unit.HowModelled.String()},
		{Key: fleet.KeyNoise, Value: noise},
	}
	digest, err := fleet.Digest([]any{c.Machine, c.System})
	if err != nil {
		return nil, fmt.Errorf("write data set: %s: %w", fleet.KeyMachineDigest, err)
	}
	metadata = append(metadata, fleet.KeyValue{Key: fleet.KeyMachineDigest, Value: digest})
	return fleet.NewTable[Row](to, metadata), nil
}
