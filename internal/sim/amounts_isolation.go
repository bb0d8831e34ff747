// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"homenode/internal/action"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// What a host with resctrl and PSI adds (Config.Resctrl):
//
//  1. A workload gets a class at once, and keeps it until another is set. Of the LLC of
//     each domain it holds at most its share, and of what each node serves, its CPUs request
//     at most theirs there (memsys, isolated.go). The number of groups is not limited.
//  2. Windows report for each workload what it holds of the LLCs, its reads and
//     write-backs, and the share of time in which it wanted more CPU than it got. This
//     world knows only shares of CPU time: where the workload lacks any, one of its threads
//     counts as waiting.

// setClass is number 1.
func (w *amounts) setClass(wl *pool, s action.Step) action.Outcome {
	refuse := func(why string) action.Outcome {
		return action.Outcome{Step: s, Status: action.Refused, Detail: why}
	}
	if !w.Config.Resctrl {
		return refuse(fmt.Sprintf("isolate %s: refused: this host has no resctrl", wl.ID))
	}
	if why := wl.Foreign(); why != "" {
		return refuse(why)
	}
	if wl.class = (action.Class{}); s.Class != nil {
		wl.class = *s.Class
	}
	return action.Outcome{Step: s, Status: action.Done}
}

// wantsMore: a workload that gets this share of the CPU time it wants on a node does not
// lack any.
const wantsMore = 0.01

// accountShared records number 2 for a step, for workload i of those present.
func (w *amounts) accountShared(i int, wl *pool, dt float64, loads []memsys.Load, results []memsys.LoadResult) {
	wl.llc = 0
	for k := range results {
		r, node := &results[k], w.Config.System.Domains[loads[k].Domain].Node
		wl.llc += r.LLC
		for m := range r.DRAM {
			bytes := w.done[k] * (r.DRAM[m] + r.Writebacks[m]) * memsys.LineBytes
			if wl.traffic += bytes; m == node {
				wl.near += bytes
			}
		}
	}
	if detmath.Sum(wl.Group.Used) < w.wants[i]*(1-wantsMore)-few {
		wl.waited += dt
	}
}

// tellShared puts it into the window.
func (wl *pool) tellShared(x *window.Workload, r Reading) {
	x.LLC = unit.Modelled(unit.Bytes(math.Floor(wl.llc)), Simulator)
	x.Traffic, x.LocalTraffic = r.bytes(&wl.traffic), r.bytes(&wl.near)
	if waits, ok := r.Rate(wl.waited).Get(); ok {
		x.Waiting = unit.Modelled(unit.Ratio(min(1, waits)), Simulator)
	} else {
		x.Waiting = unit.UnknownValue[unit.Ratio](r.Rate(wl.waited).From)
	}
	wl.waited = 0
	if !wl.class.None() {
		class := wl.class
		x.Class = &class
	}
}

// bytes is Count for bytes.
func (r Reading) bytes(sum *float64) unit.Value[unit.Bytes] {
	n := r.Count(sum)
	return unit.Value[unit.Bytes]{V: unit.OptOf(unit.Bytes(n.Or(0)), n.Known()), How: n.How, From: n.From}
}
