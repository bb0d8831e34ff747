// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// approved is Mix.Make with the approval of MAO's offline side for each workload: binding
// it pays. MAO's sensitivity model predicts a gain from counters of many servers. Here the
// approval is the truth, as if an operator had tried it: with its memory elsewhere the
// workload is slower by as much as makes an application sensitive (vmmap.ClassOf).
// Otherwise a policy that acts only on approval would stand still beside others that need
// none.
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
