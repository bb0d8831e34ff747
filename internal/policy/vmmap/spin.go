// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"slices"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Threads that spin at barriers run instructions while they wait. So the longer a program
// waits, the more instructions per cycle it has, and the fewer misses per instruction. The
// slowest thread is the one that does not wait.
//
// leastRequests is the least number of a thread's requests that shows what it does.
const leastRequests = 1000

// waiting detects threads that spin. Threads that do the same work make equally many
// requests, but threads that wait run more instructions. So threads of one workload spin if
// their requests per instruction differ by more than differ. If instead they do different
// work, its instructions are just as useless as a measure. intensity is that of the thread
// that waits least: with or without spinning, it is the program's.
//
// It is also false where threads are not read, where all of them wait equally, and for a
// single thread.
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
