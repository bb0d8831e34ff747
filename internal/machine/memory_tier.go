// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"homenode/internal/unit"
)

const tierDir = "sys/devices/virtual/memory_tiering"

// tiers fills in every node's memory tier, from
//
//	/sys/devices/virtual/memory_tiering/memory_tier4/nodelist    0-1
//	/sys/devices/virtual/memory_tiering/memory_tier22/nodelist   2
//
// Unit: none; a lower number is faster memory, 4 is usually DRAM. Since 6.1
// (mm/memory-tiers.c). A node without memory is in no tier.
func (t *tree) tiers(m *Machine) {
	for _, tier := range t.ids(tierDir, "memory_tier") {
		nodes, ok := load(t, fmt.Sprintf("%s/memory_tier%d/nodelist", tierDir, tier), parseNodeList).Get()
		if !ok {
			continue
		}
		for i := range m.Nodes {
			if n := &m.Nodes[i]; nodes.Has(n.ID) && !n.Tier.Known() {
				n.Tier = unit.Some(tier)
			}
		}
	}
}
