// SPDX-License-Identifier: Apache-2.0

package resctrl

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// Domain is an L3 cache. resctrl counts and limits by these.
type Domain struct {
	ID    int // of the cache in sysfs, in mon_L3_XX, and in schemata
	CPUs  set.CPUSet
	Nodes set.NodeSet // that its CPUs belong to
}

// DomainsOf are a machine's L3 caches with an id from the kernel, in the kernel's order.
// Nodes with several caches (AMD), and caches with several nodes (sub-NUMA clusters), are
// as common as one of each.
func DomainsOf(m machine.Machine) []Domain {
	var all []Domain
	for _, c := range m.LLCs {
		id, ok := c.ID.Get()
		if !ok || c.Level != 3 {
			continue
		}
		d := Domain{ID: id, CPUs: c.CPUs}
		for cpu := range c.CPUs.All() {
			if node, ok := m.NodeOf(cpu); ok {
				d.Nodes = d.Nodes.With(node)
			}
		}
		all = append(all, d)
	}
	return all
}

// severalNodes are the domains that span more than one node.
func severalNodes(domains []Domain) map[int]set.NodeSet {
	all := map[int]set.NodeSet{}
	for _, d := range domains {
		if d.Nodes.Len() > 1 {
			all[d.ID] = d.Nodes
		}
	}
	return all
}
