// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// nodes are memory nodes: a controller each, and on most machines a last-level cache.
func nodes() Concern {
	return Concern{
		Name: "node", Unit: "nodes", Help: "memory nodes in use", Cost: true, LowerHelps: true,
		Units: func(m machine.Machine) (all []set.CPUSet) {
			for _, n := range m.Nodes {
				all = append(all, n.CPUs)
			}
			return all
		},
	}
}
