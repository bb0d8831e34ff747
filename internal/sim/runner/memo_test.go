// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"slices"
	"sync"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
)

// All worlds that share a memo get the result of a search of their own that does not know
// where memory is. Other workloads have other results.
func TestMemo(t *testing.T) {
	_, sys := memsys.DualSkylake()
	spec := func(accesses float64) *sim.Spec {
		return &sim.Spec{Name: "a", Threads: 8, Memory: sim.MemorySpec{Private: 8 << 30}, Work: sim.WorkSpec{Cycles: 1e5, Instructions: 1e5, Regions: []sim.RegionSpec{{Size: 1 << 30, Accesses: accesses}}}}
	}
	want := Search(NewOracle(&sys, []Contender{{Spec: spec(100)}}))
	var memo Memo
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			got := memo.search(&sys, []Contender{{Spec: spec(100), Pages: []float64{float64(i), 1 << 30}}}, nil)
			if !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
	wait.Wait()
	memo.search(&sys, []Contender{{Spec: spec(200)}}, nil)
	if len(memo.found) != 2 {
		t.Errorf("%d searches of two different workloads", len(memo.found))
	}
	var none *Memo
	if got := none.search(&sys, []Contender{{Spec: spec(100)}}, nil); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
