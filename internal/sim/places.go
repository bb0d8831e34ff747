// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// place is a node of the machine.
type place struct {
	id      int
	cpus    set.CPUSet
	count   float64      // of CPUs
	domains []int        // of memsys.System
	sets    []set.CPUSet // of the domains; empty: unknown
	memory  bool
}

// placesOf are the machine's nodes. A domain's CPUs are those of the node's last-level
// caches in order, if these match the domains in number and size.
func placesOf(c Config) []place {
	places := make([]place, len(c.Machine.Nodes))
	for i, n := range c.Machine.Nodes {
		p := place{id: n.ID, cpus: n.CPUs, count: float64(n.CPUs.Len()), memory: n.Memory.Or(0) > 0}
		for d, dom := range c.System.Domains {
			if dom.Node == i {
				p.domains = append(p.domains, d)
			}
		}
		p.sets = domainSets(c, p)
		places[i] = p
	}
	return places
}

func domainSets(c Config, p place) []set.CPUSet {
	if len(p.domains) < 2 {
		return nil
	}
	var sets []set.CPUSet
	for _, llc := range c.Machine.LLCs {
		if both := llc.CPUs.Intersect(p.cpus); !both.IsEmpty() {
			sets = append(sets, both)
		}
	}
	same := slices.EqualFunc(sets, p.domains, func(s set.CPUSet, d int) bool {
		return float64(s.Len()) == c.System.Domains[d].CPUs
	})
	if !same {
		return nil
	}
	return sets
}

// Domains maps each online CPU id to its domain of memsys.System (-1: none). Where the
// machine's last-level caches are not known to be the domains, a node's CPUs are dealt out
// in order.
func (c Config) Domains() []int {
	var of []int
	for _, p := range placesOf(c) {
		k, used := 0, 0.0
		for id := range p.cpus.All() {
			for len(of) <= id {
				of = append(of, -1)
			}
			for k+1 < len(p.domains) && used >= c.System.Domains[p.domains[k]].CPUs {
				k, used = k+1, 0
			}
			if used++; len(p.domains) > 0 {
				of[id] = p.domains[k]
			}
			for i, s := range p.sets {
				if s.Has(id) {
					of[id] = p.domains[i]
				}
			}
		}
	}
	return of
}

// noOwner is the owner of a cgroup without a manager (kernel/cgroup.NoOwner).
const noOwner = "none"

// zonelist is the order in which an allocation on each node tries the nodes with memory:
// nearest first, of several the larger.
func zonelist(m machine.Machine) [][]int {
	const far = 256 // larger than every SLIT distance
	lists := make([][]int, len(m.Nodes))
	for i, n := range m.Nodes {
		for k, to := range m.Nodes {
			if to.Memory.Or(0) > 0 {
				lists[i] = append(lists[i], k)
			}
		}
		distance := func(k int) int {
			if k == i {
				return -1
			}
			return m.Distance(n.ID, m.Nodes[k].ID).Or(far)
		}
		slices.SortStableFunc(lists[i], func(a, b int) int {
			return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(m.Nodes[b].Memory.Or(0), m.Nodes[a].Memory.Or(0)))
		})
	}
	return lists
}
