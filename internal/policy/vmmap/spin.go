// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"slices"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Threads that spin at barriers run instructions while they wait, so that the longer a
// program waits the more instructions a cycle it has, and the fewer misses an
// instruction. The slowest thread is the one that does not wait.
//
// leastRequests of a thread tell something of what it does.
const leastRequests = 1000

// waiting looks for threads that spin: alike in what they do, they have as many requests,
// but those that wait have more instructions. So threads of one workload that differ in
// requests an instruction by more than so much do; or they do different things, and then
// its instructions are as little a measure. intensity is that of the thread that waits
// least: spinning or not, it is the program's.
//
// false is also where threads are not read, where all of them wait alike, and for one
// thread.
func waiting(wl *window.Workload, differ float64) (spins bool, intensity unit.Opt[float64]) {
	var all []float64
	for k := range wl.Threads {
		t := &wl.Threads[k]
		n, ok := t.Instructions.Get()
		a, ok2 := t.UncoreRequests.Get()
		if ok && ok2 && n > 0 && a >= leastRequests {
			all = append(all, float64(a)/float64(n))
		}
	}
	if len(all) < 2 {
		return false, intensity
	}
	most := slices.Max(all)
	return most > slices.Min(all)*(1+differ), unit.Some(most)
}
