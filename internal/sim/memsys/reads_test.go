// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"
)

// A load's own reads and shared reads sum to its reads, and what fits into caches is not
// read.
func TestOwnReads(t *testing.T) {
	_, sys := DualSkylake()
	home := make([]float64, len(sys.Nodes))
	home[0] = 1
	large, small := 1e9, 1e5
	for _, c := range []struct {
		regions  []Region
		low, top float64 // bounds of the share of own reads
	}{
		{[]Region{{Bytes: large, Accesses: 1}, {Bytes: large}}, 1, 1},
		{[]Region{{Bytes: large, Accesses: 1, Shared: true}}, 0, 0},
		{[]Region{{Bytes: large}, {Bytes: large, Accesses: 1, Shared: true}, {Bytes: large, Accesses: 3}}, 0.74, 0.77},
		{[]Region{{Bytes: small, Accesses: 9}, {Bytes: large, Accesses: 1, Shared: true}}, 0, 0.01},
	} {
		var s Solver
		w := &Work{Cycles: 1000, Instructions: 1000, Regions: c.regions}
		r := s.Solve(&sys, []Load{{CPUs: 4, Threads: 4, Ops: math.Inf(1), Work: w, Home: home, Slow: 1}})
		own, all := s.OwnReads(0, c.regions)
		sum := 0.0
		for _, reads := range r.Loads[0].DRAM {
			sum += reads
		}
		if math.Abs(all-sum) > 1e-3*sum || own/all < c.low || own/all > c.top {
			t.Errorf("%+v: %v of %v are its own, it reads %v", c.regions, own, all, sum)
		}
	}
}
