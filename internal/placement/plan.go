// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"homenode/internal/set"
)

// plan is how a node's share of vCPUs is spread: into how many units of the level below,
// at each level. Each has the same number of vCPUs.
type plan []int

// plans are all ways to spread vcpus evenly over a tree, the most spread first.
func (t tree) plans(vcpus, depth int) (all []plan) {
	if depth == 0 {
		if vcpus <= t.cpus.Len() {
			all = append(all, plan{})
		}
		return all
	}
	for n := min(vcpus, len(t.children)); n > 0; n-- {
		if vcpus%n != 0 {
			continue
		}
		seen := map[string]int{}
		for _, child := range t.children {
			for _, rest := range child.plans(vcpus/n, depth-1) {
				if seen[rest.key()]++; seen[rest.key()] == n {
					all = append(all, append(plan{n}, rest...))
				}
			}
		}
	}
	return all
}

func (p plan) key() string {
	b := make([]byte, 0, 2*len(p))
	for _, n := range p {
		b = append(b, byte(n), byte(n>>8))
	}
	return string(b)
}

// take are the first CPUs that carry out a plan; the tree has room.
func (t tree) take(vcpus int, p plan) set.CPUSet {
	if len(p) == 0 {
		return set.FromCPUs(t.cpus.IDs()[:vcpus]...)
	}
	var taken set.CPUSet
	left := p[0]
	for _, child := range t.children {
		if left == 0 {
			break
		}
		if child.has(vcpus/p[0], p[1:]) {
			taken, left = taken.Union(child.take(vcpus/p[0], p[1:])), left-1
		}
	}
	return taken
}

func (t tree) has(vcpus int, p plan) bool {
	return slices.ContainsFunc(t.plans(vcpus, len(p)), func(q plan) bool { return slices.Equal(p, q) })
}
