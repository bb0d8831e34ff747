// SPDX-License-Identifier: Apache-2.0

package fleet

import "homenode/internal/sim"

// Tally is what workloads got, added up. Its figures are nil where there is nothing
// to divide by.
type Tally struct {
	Seconds, Asked, Ops, Dropped float64
	CPU                          float64 // seconds
	Cycles, Instructions         float64
	Local, Remote                float64 // DRAM reads
	Latency, P99                 float64 // seconds × operations
	Requests                     float64 // operations that have a latency
	Stalled                      float64 // seconds
}

func (t *Tally) add(v *sim.Truth) {
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
	if v.Latency > 0 {
		t.Latency += float64(v.Latency * v.Ops)
		t.P99 += float64(v.P99 * v.Ops)
		t.Requests += v.Ops
	}
}

func (t *Tally) plus(o *Tally) {
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
	t.Stalled += o.Stalled
}

// LocalRatio is of DRAM reads.
func (t *Tally) LocalRatio() *float64 { return over(t.Local, t.Local+t.Remote) }

// MeanLatency is of a request, seconds.
func (t *Tally) MeanLatency() *float64 { return over(t.Latency, t.Requests) }

// MeanP99 is seconds.
func (t *Tally) MeanP99() *float64 { return over(t.P99, t.Requests) }

// CPUPerOp is seconds.
func (t *Tally) CPUPerOp() *float64 { return over(t.CPU, t.Ops) }

// CPI is cycles an instruction.
func (t *Tally) CPI() *float64 { return over(t.Cycles, t.Instructions) }

// IPC is instructions a cycle.
func (t *Tally) IPC() *float64 { return over(t.Instructions, t.Cycles) }

func over(a, b float64) *float64 {
	if !(b > 0) {
		return nil
	}
	return known(a / b)
}
