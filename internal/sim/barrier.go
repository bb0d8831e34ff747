// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/exact"
	"homenode/internal/sim/memsys"
)

// hold lets those who wait at barriers do no more than their slowest threads can, and
// says if there is anybody. The pace is
//
//	min over places (operations a second and thread) / (1 + √(2 ln n × spread / N)):
//
// n threads do N operations of random work between two barriers, and the largest of n
// sums of N is so far above their mean.
func (w *World) hold(res *memsys.Result) (any bool) {
	k := 0
	for i, wl := range w.live {
		first := k
		for k < len(w.loads) && w.loads[k].Workload == i {
			k++
		}
		if wl.spec.Work.Barrier == 0 || first == k {
			continue
		}
		any = true
		pace := paceOf(w.loads[first:k], res.Loads[first:k]) / wl.spec.straggle()
		for j := first; j < k; j++ {
			w.loads[j].Ops = float64(pace * w.loads[j].Threads)
		}
	}
	return any
}

// paceOf is the operations a second of a thread, where they are the fewest.
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

// straggle is how much longer the slowest of its threads takes to a barrier than the
// mean one, where they are all in the same place.
func (s *Spec) straggle() float64 {
	n := float64(s.Threads)
	return 1 + math.Sqrt(2*exact.Log(n)*orOne(s.Demand.Spread)/float64(s.Work.Barrier))
}

// spins is the CPU time that was given and not worked, of threads that spin.
func (w *World) spins(wl *workload, l *memsys.Load, worked, dt float64) float64 {
	if !wl.spec.Work.Spin {
		return 0
	}
	given := wl.group.Used[w.c.System.Domains[l.Domain].Node] * wl.share[l.Domain]
	return max(0, float64(given*dt)-worked)
}
