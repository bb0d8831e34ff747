// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/memsys"
)

// hold limits threads that wait at barriers to the pace of their slowest thread, and
// reports whether there are any. The pace is
//
//	min over places (operations a second and thread) / Spec.Straggle
func (w *amounts) hold(res *memsys.Result) (any bool) {
	k := 0
	for i, wl := range w.pools {
		first := k
		for k < len(w.Loads) && w.Loads[k].Workload == i {
			k++
		}
		if wl.Spec.Work.Barrier == 0 || first == k {
			continue
		}
		any = true
		pace := paceOf(w.Loads[first:k], res.Loads[first:k]) / wl.Spec.Straggle()
		for j := first; j < k; j++ {
			w.Loads[j].Ops = pace * w.Loads[j].Threads
		}
	}
	return any
}

// paceOf is the operations per second of a thread, where that is lowest.
func paceOf(loads []memsys.Load, results []memsys.LoadResult) float64 {
	pace := math.Inf(1)
	for k := range loads {
		if loads[k].Threads > few {
			pace = min(pace, results[k].Ops/loads[k].Threads)
		}
	}
	if math.IsInf(pace, 1) {
		return 0
	}
	return pace
}

// spins is the CPU time that spinning threads were given and did no work in.
func (w *amounts) spins(wl *pool, l *memsys.Load, worked, dt float64) float64 {
	if !wl.Spec.Work.Spin {
		return 0
	}
	given := wl.Group.Used[w.Config.System.Domains[l.Domain].Node] * wl.share[l.Domain]
	return max(0, given*dt-worked)
}
