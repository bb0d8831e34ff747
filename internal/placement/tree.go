// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// tree is a node's CPUs, by the counted resources inside it: LLCs, in them L2s, in them
// cores. Children are in the order of their CPUs.
type tree struct {
	cpus     set.CPUSet
	children []tree
}

// split is a node's tree by levels of units, the largest first. CPUs that no unit of a
// level has (unknown caches) are a unit of their own.
func split(cpus set.CPUSet, levels [][]set.CPUSet) tree {
	t := tree{cpus: cpus}
	if len(levels) == 0 {
		return t
	}
	left := cpus
	for _, unit := range levels[0] {
		if part := unit.Intersect(left); !part.IsEmpty() {
			t.children, left = append(t.children, split(part, levels[1:])), left.Minus(part)
		}
	}
	for _, id := range left.IDs() {
		t.children = append(t.children, split(set.FromCPUs(id), levels[1:]))
	}
	slices.SortStableFunc(t.children, func(a, b tree) int { return first(a.cpus) - first(b.cpus) })
	return t
}

func first(cpus set.CPUSet) int {
	id, _ := cpus.First()
	return id
}

// shape is the same text for trees of the same form.
func (t tree) shape() string {
	if len(t.children) == 0 {
		return fmt.Sprint(t.cpus.Len())
	}
	var parts []string
	for _, c := range t.children {
		parts = append(parts, c.shape())
	}
	slices.Sort(parts)
	return fmt.Sprint(parts)
}

// levelsOf are the counted concerns inside nodes that make a difference on this machine,
// the largest resource first, with their units. One is left out if its units are single
// CPUs, whole nodes, or those of the level above.
func levelsOf(m machine.Machine, concerns []Concern) (kept []Concern, levels [][]set.CPUSet) {
	above := nodes().Units(m)
	for _, c := range slices.Backward(concerns) {
		if c.Units == nil || c.Name == nodes().Name {
			continue
		}
		units := within(c.Units(m), above)
		if len(units) == len(above) || !slices.ContainsFunc(units, func(u set.CPUSet) bool { return u.Len() > 1 }) {
			continue
		}
		kept, levels, above = append(kept, c), append(levels, units), units
	}
	return kept, levels
}

// within are the parts of units that lie in one unit above each. Those that have no CPU
// are dropped.
func within(units, above []set.CPUSet) (parts []set.CPUSet) {
	for _, a := range above {
		for _, u := range units {
			if part := u.Intersect(a); !part.IsEmpty() {
				parts = append(parts, part)
			}
		}
	}
	return parts
}
