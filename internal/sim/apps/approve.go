// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"slices"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// approved is Mix.Make with the word of MAO's offline side on each workload: binding it
// pays. Its sensitivity model predicts a gain from counters of many servers; here it is
// the truth, as of an operator who has tried it: with its memory elsewhere the workload
// is slower by as much as makes an application sensitive (vmmap.ClassOf). A policy that
// acts only where it was told to would else stand still beside others that need no word.
func approved(make func(machine.Machine, memsys.System, uint64) []sim.Spec) func(machine.Machine, memsys.System, uint64) []sim.Spec {
	return func(m machine.Machine, y memsys.System, seed uint64) []sim.Spec {
		specs := slices.Clone(make(m, y, seed))
		t := trial{y: &y, at: benchOf(&y)}
		t.half = max(1, int(y.Domains[t.at].CPUs)/max(1, y.Threads)/2)
		far, _, ok := remote(m, &y, y.Domains[t.at].Node)
		for i := range specs {
			if specs[i].Approved || !ok {
				continue
			}
			t.work = workOf(specs[i])
			_, sensitive := vmmap.ClassOf(vmmap.Slowdowns{Remote: unit.Some(t.farther(far))})
			specs[i].Approved = sensitive.Or(false)
		}
		return specs
	}
}
