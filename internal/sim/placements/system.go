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
//  2. A core has as much more of its L2 as cores that share the L2 are not in use. That such
//     cores also share a front end and an FPU (Opteron 6272) is not modelled.
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
	sys.L2 *= sharersOfL2(m, m.OnlineCPUs()) / sharersOfL2(m, cpus) // 2
	return sys
}

// sharersOfL2 is the largest number of cores below one L2 that have one of these CPUs.
func sharersOfL2(m machine.Machine, cpus set.CPUSet) float64 {
	most := 1
	for _, l2 := range m.L2s {
		n := 0
		for _, core := range m.Cores {
			if !core.Intersect(l2.CPUs).Intersect(cpus).IsEmpty() {
				n++
			}
		}
		most = max(most, n)
	}
	return float64(most)
}
