// SPDX-License-Identifier: Apache-2.0

package fleet

import "homenode/internal/sim/runner"

// Figures of a tally; nil where there is nothing to divide by.

func localRatio(t *runner.Tally) *float64 { return over(t.Local, t.Local+t.Remote) }

// meanLatency is of a request, seconds.
func meanLatency(t *runner.Tally) *float64 { return over(t.Latency, t.Requests) }

// meanP99 is in seconds.
func meanP99(t *runner.Tally) *float64 { return over(t.P99, t.Requests) }

// cpuPerOp is in seconds.
func cpuPerOp(t *runner.Tally) *float64 { return over(t.CPU, t.Ops) }

// cpi is cycles per instruction.
func cpi(t *runner.Tally) *float64 { return over(t.Cycles, t.Instructions) }

// ipc is instructions per cycle.
func ipc(t *runner.Tally) *float64 { return over(t.Instructions, t.Cycles) }

func over(a, b float64) *float64 {
	if !(b > 0) {
		return nil
	}
	return known(a / b)
}
