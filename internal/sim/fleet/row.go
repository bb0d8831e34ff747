// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"time"

	"homenode/internal/sim/detmath"
	"homenode/internal/window"
)

// RowSchema is the version of Row's columns.
const RowSchema = 2

// GainMeaning explains a gain to a reader of rows who does not have this source.
const GainMeaning = "1 - on/off of the same replica over the same windows: its server with the policy against the same server with no replica bound. " +
	"It is not the gain of binding this replica alone: neighbours_bound_ratio of the server's other CPU use was bound too. " +
	"Rows with bound = false are controls: never bound, their gain is their neighbours' doing"

// Row is a replica: its figures while no replica was bound, and the effect of the policy.
// nil is unknown. Ratios are in [0, 1].
//
// A gain is 1 − on / off: the server with the policy against the same server with no
// replica bound, for this replica, over the same windows. A figure that falls by a tenth
// gains 0.1; one that rises gains less than 0. So a gain includes what the neighbours'
// bindings brought this replica (NeighboursBound says how many of them are bound), and is
// not the gain of binding it alone. Replicas that were never bound are controls: all of
// their gain comes from the neighbours.
type Row struct {
	Server           string `parquet:"server_hash,dict"`
	Service          string `parquet:"service_hash,dict"`
	Replica          string `parquet:"replica_hash"`
	Machine          string `parquet:"machine,dict"`
	GeneratorVersion int32  `parquet:"generator_version"`
	Seed             uint64 `parquet:"seed"`
	How              string `parquet:"how,dict"`       // always "modelled"
	NoiseMeasured    bool   `parquet:"noise_measured"` // false: figures have no noise

	Bound bool `parquet:"bound"` // false: a control

	// Features: means over the windows before it was bound; for controls, over as many
	// windows as are observed before the earliest binding. They come from the server with
	// no replica bound.
	WindowsBefore    int32    `parquet:"windows_before"`
	MBW              *float64 `parquet:"mbw_bytes_per_s,optional"`
	MSR              *float64 `parquet:"msr_ratio,optional"`
	NPMR             *float64 `parquet:"npmr_ratio,optional"`
	RMBR             *float64 `parquet:"rmbr_ratio,optional"`
	LocalAccessRatio *float64 `parquet:"local_access_ratio,optional"`
	CPU              *float64 `parquet:"cpu_cpus,optional"`
	RSS              *float64 `parquet:"rss_bytes,optional"` // anonymous memory and files
	IPC              *float64 `parquet:"ipc_instructions_per_cycle,optional"`
	CPULimit         *float64 `parquet:"cpu_limit_cpus,optional"`    // null: none is set
	LoadFactor       *float64 `parquet:"load_factor_ratio,optional"` // CPU / limit
	LLCMPKI          *float64 `parquet:"llc_misses_per_kilo_instruction,optional"`

	// The effect: with the policy against without, over the same windows, in which this
	// replica was bound; for a control, over as long.
	WindowsCompared int32 `parquet:"windows_compared"`
	// NeighboursBound is the share of bound workloads in the CPU time of the server's other
	// workloads. nil: they used none.
	NeighboursBound    *float64 `parquet:"neighbours_bound_ratio,optional"`
	LocalAccessRatioOn *float64 `parquet:"local_access_ratio_on,optional"`
	GainLatency        *float64 `parquet:"gain_latency_ratio,optional"`
	GainCPU            *float64 `parquet:"gain_cpu_ratio,optional"` // of CPU time per operation
	GainIPC            *float64 `parquet:"gain_ipc_ratio,optional"` // of cycles per instruction
	GainLatencyTrue    *float64 `parquet:"gain_latency_true_ratio,optional"`
	GainCPUTrue        *float64 `parquet:"gain_cpu_true_ratio,optional"`
	GainIPCTrue        *float64 `parquet:"gain_ipc_true_ratio,optional"`
}

// Observe takes a row's features from one window of a workload.
func (r *Row) Observe(wl *window.Workload, length time.Duration) {
	var m means
	m.addWindow(wl, length)
	m.into(r)
}

// Disturb applies noise to what a server would measure.
func (r *Row) Disturb(n Noise, random detmath.Random) {
	_, err := n.Measured()
	r.NoiseMeasured = err == nil
	for _, f := range []struct {
		value           *float64
		deviation, most float64
	}{
		{r.MBW, n.Features.MBW, math.MaxFloat64},
		{r.MSR, n.Features.MSR, 1},
		{r.NPMR, n.Features.NPMR, 1},
		{r.RMBR, n.Features.RMBR, 1},
		{r.CPU, n.Features.CPU, math.MaxFloat64},
		{r.RSS, n.Features.RSS, math.MaxFloat64},
		{r.IPC, n.Features.IPC, math.MaxFloat64},
		{r.LLCMPKI, n.Features.LLCMPKI, math.MaxFloat64},
	} {
		put(f.value, f.deviation, f.most, &random)
	}
	if r.RMBR != nil && r.LocalAccessRatio != nil { // from the same two counters
		*r.LocalAccessRatio = 1 - *r.RMBR
	}
	if r.CPU != nil && r.CPULimit != nil {
		r.LoadFactor = known(*r.CPU / *r.CPULimit)
	}
	for _, g := range []struct {
		value, of **float64
		deviation float64
	}{
		{&r.GainLatency, &r.GainLatencyTrue, n.Gains.Latency},
		{&r.GainCPU, &r.GainCPUTrue, n.Gains.CPU},
		{&r.GainIPC, &r.GainIPCTrue, n.Gains.IPC},
	} {
		if *g.of != nil {
			*g.value = known(**g.of)
		}
		putGain(*g.value, g.deviation, &random)
	}
}

func known(v float64) *float64 { return &v }
