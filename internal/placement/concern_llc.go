// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// llcs are last-level caches where a node has several: a CCX of AMD's, a cluster of
// Arm's. One that spans nodes counts once in each.
func llcs() Concern {
	return Concern{
		Name: "llc", Unit: "last-level caches", Help: "last-level caches in use", Cost: true, LowerHelps: true,
		Units: func(m machine.Machine) []set.CPUSet { return cachesOf(m.LLCs) },
	}
}
