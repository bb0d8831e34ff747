// SPDX-License-Identifier: Apache-2.0

package runner

import "homenode/internal/sim"

// Tally is the sum of what workloads got.
type Tally struct {
	Seconds, Asked, Ops, Dropped float64
	CPU                          float64 // seconds
	Cycles, Instructions         float64
	Local, Remote                float64 // DRAM reads
	Latency, P99                 float64 // seconds × operations
	Requests                     float64 // operations that have a latency
	Rated                        float64 // operations that have a 99th percentile
	Stalled, Bound               float64 // seconds
}

// Add adds what one workload got.
func (t *Tally) Add(v *sim.Truth) {
	t.Seconds += v.Seconds
	t.Asked += v.Asked
	t.Ops += v.Ops
	t.Dropped += v.Dropped
	t.CPU += v.CPUSeconds
	t.Cycles += v.Cycles
	t.Instructions += v.Instructions
	t.Local += v.Local
	t.Remote += v.Remote
	t.Stalled += v.Stalled
	t.Bound += v.BoundSeconds
	t.Latency += v.Latency * v.Ops
	t.P99 += v.P99 * v.Ops
	if v.Latency > 0 {
		t.Requests += v.Ops
	}
	if v.P99 > 0 {
		t.Rated += v.Ops
	}
}

// Plus adds another tally.
func (t *Tally) Plus(o *Tally) {
	t.Seconds += o.Seconds
	t.Asked += o.Asked
	t.Ops += o.Ops
	t.Dropped += o.Dropped
	t.CPU += o.CPU
	t.Cycles += o.Cycles
	t.Instructions += o.Instructions
	t.Local += o.Local
	t.Remote += o.Remote
	t.Latency += o.Latency
	t.P99 += o.P99
	t.Requests += o.Requests
	t.Rated += o.Rated
	t.Stalled += o.Stalled
	t.Bound += o.Bound
}

// LocalRatio is the local share of DRAM reads; 0 without reads.
func (t *Tally) LocalRatio() float64 { return Share(t.Local, t.Local+t.Remote) }

// CPUPerOp is in seconds; 0 without operations.
func (t *Tally) CPUPerOp() float64 { return Over(t.CPU, t.Ops) }

// IPC is instructions per cycle; 0 without cycles.
func (t *Tally) IPC() float64 { return Over(t.Instructions, t.Cycles) }

// Over is part / whole; 0 where whole is 0.
func Over(part, whole float64) float64 {
	if !(whole > 0) {
		return 0
	}
	return part / whole
}

// Share is Over, limited to 0 … 1 against rounding.
func Share(part, whole float64) float64 { return max(0, min(1, Over(part, whole))) }
