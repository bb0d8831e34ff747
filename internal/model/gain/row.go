// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"

	"homenode/internal/dataset"
)

// RowSchema is the version of Row's columns.
const RowSchema = 2

// KindRows is what a file of Row says that it is.
const KindRows = "homenode-trials"

// Row is a trial of one replica, which was bound alone: what a model learns from. nil is
// unknown. A gain is 1 − bound / unbound of the same replica; CPU is CPU time per operation.
// Names are hashes, so that a file can be handed on.
type Row struct {
	Server    string `parquet:"server_hash,dict"`
	Service   string `parquet:"service_hash,dict"`
	Replica   string `parquet:"replica_hash"`
	Kind      string `parquet:"kind,dict"`
	Source    string `parquet:"source,dict"` // Simulator, Lab or Measured
	Machine   string `parquet:"machine,dict"`
	Seed      uint64 `parquet:"seed"`
	Generator int32  `parquet:"generator_version"` // of the simulator's servers; 0: none

	// Features: means over windows without a binding.
	MBW  *float64 `parquet:"mbw_bytes_per_s,optional"`
	MSR  *float64 `parquet:"msr_ratio,optional"`
	NPMR *float64 `parquet:"npmr_ratio,optional"`
	RMBR *float64 `parquet:"rmbr_ratio,optional"`
	CPU  *float64 `parquet:"cpu_cpus,optional"`
	IPC  *float64 `parquet:"ipc_instructions_per_cycle,optional"`
	MPKI *float64 `parquet:"llc_misses_per_kilo_instruction,optional"`
	// CPUOfNode is what it uses of a node's CPUs, the fewest of a node; Busy what all workloads use of
	// the server's, Idlest of those of the node that is used least.
	CPUOfNode *float64 `parquet:"cpu_of_node_ratio,optional"`
	Busy      *float64 `parquet:"server_busy_ratio,optional"`
	Idlest    *float64 `parquet:"idlest_node_busy_ratio,optional"`

	Windows    int32 `parquet:"windows_compared"`
	Neighbours int32 `parquet:"neighbours"` // other workloads of the server

	GainLatency      *float64 `parquet:"gain_latency_ratio,optional"`
	GainLatencyAgain *float64 `parquet:"gain_latency_again_ratio,optional"` // of a second trial
	GainLatencyTrue  *float64 `parquet:"gain_latency_true_ratio,optional"`  // of the first, without noise
	GainLatencyAll   *float64 `parquet:"gain_latency_all_ratio,optional"`   // all replicas of its server bound
	GainCPU          *float64 `parquet:"gain_cpu_ratio,optional"`
	GainCPUAgain     *float64 `parquet:"gain_cpu_again_ratio,optional"`
	GainCPUAll       *float64 `parquet:"gain_cpu_all_ratio,optional"`
}

// WriteRows writes rows as a file for 'homenode-model gain', with what it says about how they were
// made. Files with many rows are fleet.Table's.
func WriteRows(to io.Writer, rows []Row, about []dataset.KeyValue) error {
	return dataset.Write(to, slices.Concat([]dataset.KeyValue{
		{Key: "homenode.kind", Value: KindRows}, {Key: "homenode.schema", Value: strconv.Itoa(RowSchema)},
	}, about), rows)
}

// Hashed is a name as a file that is handed on may have it: the same name has the same hash.
func Hashed(what, name string) string {
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(what+"\x00"+name)))
}
