// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
)

// systemOf is the memory system with only the placement's CPUs. memsys counts CPUs in use
// and gives them cores of their own first, as Linux does. Threads tied to CPUs may share
// cores although others are idle, and nothing else is on the machine: so what is not in use
// is taken away.
//
//  1. A domain has the cores with a CPU in use.
//  2. A core has as much more of its L2 as cores that share the L2 are not in use, by the
//     fullest L2 of its domain. Such cores also share a front end and an FPU on the Opteron,
//     which is not modelled.
func systemOf(m machine.Machine, sys memsys.System, cpus set.CPUSet) memsys.System {
	sys.Domains = slices.Clone(sys.Domains)
	of := sim.Config{Machine: m, System: sys}.Domains()
	for d := range sys.Domains {
		sys.Domains[d].CPUs = 0
	}
	for _, core := range m.Cores { // 1
		if id, ok := core.Intersect(cpus).First(); ok {
			sys.Domains[of[id]].CPUs += float64(max(1, sys.Threads))
		}
	}
	all, used := sharersOfL2(m, of, m.OnlineCPUs()), sharersOfL2(m, of, cpus) // 2
	for d := range sys.Domains {
		if n := used[d]; n > 0 && n < slices.Max(all) {
			sys.Domains[d].L2 = sys.L2 * slices.Max(all) / n
		}
	}
	return sys
}

// sharersOfL2 is, by domain, the largest number of cores below one L2 that have one of these
// CPUs; of is the domain of each CPU.
func sharersOfL2(m machine.Machine, of []int, cpus set.CPUSet) []float64 {
	most := make([]float64, slices.Max(of)+1)
	for _, l2 := range m.L2s {
		n := map[int]float64{}
		for _, core := range m.Cores {
			if id, ok := core.Intersect(l2.CPUs).Intersect(cpus).First(); ok {
				n[of[id]]++
				most[of[id]] = max(most[of[id]], n[of[id]])
			}
		}
	}
	return most
}
