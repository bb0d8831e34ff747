// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// cores are shared by SMT siblings: pipelines and L1.
func cores() Concern {
	return Concern{
		Name: "core", Unit: "cores", Help: "cores in use; fewer: SMT siblings share one", Cost: true, LowerHelps: true,
		Units: func(m machine.Machine) []set.CPUSet { return m.Cores },
	}
}
