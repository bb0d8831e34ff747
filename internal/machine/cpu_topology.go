// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"homenode/internal/set"
	"homenode/internal/unit"
)

// topology is what /sys/devices/system/cpu/cpuN/topology says of one CPU:
//
//	core_id              8         unique within a package only
//	core_cpus_list       0-3       CPUs (threads) of its core
//	die_cpus_list        0-27
//	package_cpus_list    0-27,56-83
//	physical_package_id  0         -1: the kernel does not know
//
// Unit: logical CPU ids. The files core_cpus, die_cpus and package_cpus since
// 5.3; before, thread_siblings and core_siblings (2.6.16, as masks; *_list since
// 2.6.26). die_id is -1 where the architecture has no dies. An offline CPU has
// no topology directory.
type topology struct {
	coreID, dieID, packageID  unit.Opt[int]
	core, die, packageSibling unit.Opt[set.CPUSet]
}

func (t *tree) topology(cpu int) topology {
	file := func(name string) string { return cpuPath(cpu, "topology/"+name) }
	siblings := func(now, before string) unit.Opt[set.CPUSet] {
		return t.cpuList(file(now+"_list"), file(now), file(before+"_list"), file(before))
	}
	return topology{
		coreID:         t.id(file("core_id")),
		dieID:          t.id(file("die_id")),
		packageID:      t.id(file("physical_package_id")),
		core:           siblings("core_cpus", "thread_siblings"),
		die:            t.cpuList(file("die_cpus_list"), file("die_cpus")),
		packageSibling: siblings("package_cpus", "core_siblings"),
	}
}

// topologies sorts the CPUs into packages, dies and cores.
//
//  1. A package or die whose id the kernel does not know (-1) is unknown,
//     whatever its siblings say: POWER7 kernels list the core there.
//  2. CPUs are of one core when they are thread siblings *and* share core_id:
//     some kernels report the two cores of a Bulldozer module as SMT siblings,
//     with different core_ids (hwloc's rule for such modules too).
//  3. Groups are numbered by their lowest CPU.
func (t *tree) topologies(m *Machine) {
	all := make([]topology, len(m.CPUs))
	ids := map[int]unit.Opt[int]{}
	for i, c := range m.CPUs {
		if c.Online {
			all[i] = t.topology(c.ID)
			ids[c.ID] = all[i].coreID
		}
	}
	var packages, dies, cores groups
	for i := range m.CPUs {
		c, topo := &m.CPUs[i], all[i]
		if topo.packageID.Known() { // 1
			c.Package = packages.of(t.online, c.ID, topo.packageSibling)
		}
		if topo.dieID.Known() {
			c.Die = dies.of(t.online, c.ID, topo.die)
		}
		c.Core = cores.of(t.online, c.ID, sameCore(topo.core, topo.coreID, ids)) // 2
	}
	m.Packages, m.Dies, m.Cores = packages.sets, dies.sets, cores.sets
}

// sameCore drops the siblings that have another core_id.
func sameCore(siblings unit.Opt[set.CPUSet], id unit.Opt[int], ids map[int]unit.Opt[int]) unit.Opt[set.CPUSet] {
	cpus, ok := siblings.Get()
	if !ok {
		return siblings
	}
	for cpu := range cpus.All() {
		if other, listed := ids[cpu]; listed && other != id {
			cpus = cpus.Without(cpu)
		}
	}
	return unit.Some(cpus)
}

// groups numbers sets in the order in which they first appear.
type groups struct {
	sets  []set.CPUSet
	index map[set.CPUSet]int
}

// of returns the number of the set that cpu says it belongs to; unknown in,
// unknown out. CPUs that are not online are dropped: recorded trees are trimmed.
func (g *groups) of(online set.CPUSet, cpu int, siblings unit.Opt[set.CPUSet]) unit.Opt[int] {
	cpus, ok := siblings.Get()
	if !ok {
		return unit.None[int]()
	}
	cpus = cpus.Intersect(online).With(cpu)
	if g.index == nil {
		g.index = map[set.CPUSet]int{}
	}
	i, seen := g.index[cpus]
	if !seen {
		i = len(g.sets)
		g.index[cpus] = i
		g.sets = append(g.sets, cpus)
	}
	return unit.Some(i)
}
