// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// l2s are L2 caches. On Bulldozer two cores share one, and the floating-point unit.
func l2s() Concern {
	return Concern{
		Name: "l2", Unit: "L2 caches", Help: "L2 caches in use; fewer: more vCPUs share one", Cost: true, LowerHelps: true,
		Units: func(m machine.Machine) []set.CPUSet { return cachesOf(m.L2s) },
	}
}

func cachesOf(caches []machine.Cache) (all []set.CPUSet) {
	for _, c := range caches {
		all = append(all, c.CPUs)
	}
	return all
}
