// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// What /sys/devices/system/cpu/cpuN/topology has for one CPU:
//
//	core_cpus_list       0-3       CPUs (threads) of its core
//	die_cpus_list        0-27
//	package_cpus_list    0-27,56-83
//	core_id              8         unique within a package only
//	die_id               0         -1: the architecture has no dies
//	physical_package_id  0         -1: the kernel has no number for it
//
// Unit: logical CPU ids. The files core_cpus, die_cpus and package_cpus since 5.3;
// before, thread_siblings and core_siblings (2.6.16, as masks; *_list since 2.6.26). An
// offline CPU has no topology directory. Masks are read before lists, here and elsewhere:
// in trees edited by hand the lists are those of another machine, and hwloc reads only
// masks.
var (
	coreFiles    = []string{"core_cpus", "core_cpus_list", "thread_siblings", "thread_siblings_list"}
	dieFiles     = []string{"die_cpus", "die_cpus_list"}
	packageFiles = []string{"package_cpus", "package_cpus_list", "core_siblings", "core_siblings_list"}
)

// topologies sorts the CPUs into packages, dies and cores.
//
//  1. The lists of siblings make the packages: s390 and POWER7 kernels have packages
//     without a number (-1). Numbers help where lists are missing, and decide, with a
//     doubt, where the two contradict each other (see contradicted).
//  2. CPUs are read in ascending order, and one that an earlier CPU named as its sibling
//     is not read again: lists agree, and each costs an open. Where broken firmware makes
//     them disagree, no CPU ends up in two groups.
//  3. On AMD's families 15h and 16h the thread siblings are the cores of a module (see
//     splitsThreads).
//  4. A die without a number (-1) is unknown: the kernel then lists the CPU alone.
func (t *tree) topologies(m *Machine) {
	var packages, dies, cores groups
	byID := map[int]set.CPUSet{}
	for i := range m.CPUs {
		c := &m.CPUs[i]
		if !c.Online {
			continue
		}
		if !cores.has(c.ID) {
			cores.add(t.online, c.ID, t.core(c.ID))
		}
		if id, ok := t.id(cpuPath(c.ID, "topology/physical_package_id")).Get(); ok {
			byID[id] = byID[id].With(c.ID)
		}
		if !packages.has(c.ID) {
			packages.add(t.online, c.ID, t.siblings(c.ID, packageFiles))
		}
		if !dies.has(c.ID) {
			dies.add(t.online, c.ID, t.die(c.ID))
		}
	}
	if t.contradicted(m, packages.sets, byID, cores) {
		packages = groups{}
	}
	for i := range m.CPUs { // 1: what only has a number
		if c := m.CPUs[i].ID; !packages.has(c) {
			packages.add(t.online, c, holder(byID, c))
		}
	}
	if len(byID) > 0 {
		packages.sort()
	}
	for i := range m.CPUs {
		c := &m.CPUs[i]
		c.Package, c.Die, c.Core = packages.of(c.ID), dies.of(c.ID), cores.of(c.ID)
	}
	m.Packages, m.Dies, m.Cores = packages.sets, dies.sets, cores.sets
}

// contradicted compares the lists of siblings with the numbers of packages. The kernel makes
// both from one number, but on some architectures the list ends at the node (POWER,
// arm64 until 5.4), and firmware or a hypervisor may have any list.
//
// Where all CPUs have a number and these make other packages, the numbers are believed:
// they say what is soldered together, a list may say less. They are not where a number is
// that of several packages, which then have cores of one core_id (SGI's Altix). It is a
// doubt either way. On s390 a number is unique within a book only, and nothing is compared.
func (t *tree) contradicted(m *Machine, lists []set.CPUSet, byID map[int]set.CPUSet, cores groups) bool {
	var numbered set.CPUSet
	for _, cpus := range byID {
		numbered = numbered.Union(cpus)
	}
	same := true
	for _, list := range lists {
		first, ok := list.Intersect(numbered).First()
		same = same && (!ok || holder(byID, first).Or(set.CPUSet{}) == list.Intersect(numbered))
	}
	if same || t.id(cpuPath(lowest(t.online), "topology/book_id")).Known() {
		return false
	}
	believed, numbers := "the numbers were believed", true
	switch {
	case numbered != t.online:
		believed, numbers = "the lists were believed, for some cpus have no number", false
	case !t.oneCoreEach(byID, cores):
		believed, numbers = "the lists were believed, for cores of one number have one core_id", false
	}
	t.doubt(&m.PackageDoubts, cpuDir, fmt.Sprintf("the sibling lists have %d packages, physical_package_id has %d: %s", len(lists), len(byID), believed))
	return numbers
}

// oneCoreEach: within a number, no two cores have the same core_id.
func (t *tree) oneCoreEach(byID map[int]set.CPUSet, cores groups) bool {
	for _, cpus := range byID {
		seen := map[int]unit.Opt[int]{}
		for cpu := range cpus.All() {
			id, ok := t.coreID(cpu).Get()
			core := cores.of(cpu)
			if had, twice := seen[id]; ok && twice && had != core {
				return false
			}
			if ok {
				seen[id] = core
			}
		}
	}
	return true
}

// holder is the set that has this CPU.
func holder(sets map[int]set.CPUSet, cpu int) unit.Opt[set.CPUSet] {
	for _, cpus := range sets {
		if cpus.Has(cpu) {
			return unit.Some(cpus)
		}
	}
	return unit.None[set.CPUSet]()
}

// siblings reads the first of these files in cpuN/topology that has content. Kernels do
// not change in the middle of a tree: the name that served last time is tried first.
func (t *tree) siblings(cpu int, names []string) unit.Opt[set.CPUSet] {
	dir := cpuPath(cpu, "topology/")
	served, asked := t.served[names[0]]
	if asked && served != "" {
		if cpus := t.listOf(cpu, dir+served); cpus.Known() {
			return cpus
		}
	}
	for _, name := range names {
		if asked && name == served {
			continue
		}
		if cpus := t.listOf(cpu, dir+name); cpus.Known() {
			t.served[names[0]] = name
			return cpus
		}
	}
	return unit.None[set.CPUSet]()
}

// listOf loads a list or mask of what a CPU shares with others. One that has others but
// not the CPU itself is not believed.
func (t *tree) listOf(cpu int, path string) unit.Opt[set.CPUSet] {
	cpus := t.cpuList(path)
	if list, ok := cpus.Get(); ok && !list.IsEmpty() && !list.Has(cpu) {
		t.malformed(path, fmt.Errorf("line 1: it lacks cpu %d itself", cpu))
		return unit.None[set.CPUSet]()
	}
	return cpus
}

// core returns the CPUs of a CPU's core.
func (t *tree) core(cpu int) unit.Opt[set.CPUSet] {
	siblings := t.siblings(cpu, coreFiles)
	cpus := siblings.Or(set.CPUSet{}).Intersect(t.online)
	if cpus.Len() < 2 || !t.splitsThreads(cpu, cpus) {
		return siblings
	}
	mine := t.coreID(cpu)
	for other := range cpus.All() {
		if t.coreID(other) != mine {
			cpus = cpus.Without(other)
		}
	}
	return unit.Some(cpus)
}

func (t *tree) coreID(cpu int) unit.Opt[int] { return t.id(cpuPath(cpu, "topology/core_id")) }

// splitsThreads reports whether what the kernel calls thread siblings are cores
// of their own, sharing a module: so do old kernels on AMD's families 15h and 16h
// (Opteron 6272), and then the siblings' core_ids differ. hwloc's rule too
// (look_sysfscpu). Elsewhere, differing core_ids are no news: some kernels
// number threads. Asked once per tree; without /proc/cpuinfo, the ids decide.
func (t *tree) splitsThreads(cpu int, siblings set.CPUSet) bool {
	if v, ok := t.splits.Get(); ok {
		return v
	}
	other, _ := siblings.Without(cpu).First()
	splits := t.coreID(cpu) != t.coreID(other)
	if family, ok := t.family().Get(); ok && splits {
		splits = family.vendor == "AuthenticAMD" && (family.number == 0x15 || family.number == 0x16)
	}
	t.splits = unit.Some(splits)
	return splits
}

func (t *tree) die(cpu int) unit.Opt[set.CPUSet] {
	if t.noDies {
		return unit.None[set.CPUSet]()
	}
	before := len(t.errs)
	if id := t.id(cpuPath(cpu, "topology/die_id")); !id.Known() { // 4
		t.noDies = len(t.errs) == before // the other CPUs have none either
		return unit.None[set.CPUSet]()
	}
	return t.siblings(cpu, dieFiles)
}

// groups numbers disjoint sets in the order in which they first appear.
type groups struct {
	sets  []set.CPUSet
	index map[int]int // by CPU
	taken set.CPUSet  // by the sets
}

func (g *groups) has(cpu int) bool { _, ok := g.index[cpu]; return ok }

func (g *groups) of(cpu int) unit.Opt[int] {
	i, ok := g.index[cpu]
	return unit.OptOf(i, ok)
}

// sort renumbers the groups by their lowest CPU.
func (g *groups) sort() {
	slices.SortFunc(g.sets, func(a, b set.CPUSet) int { return cmp.Compare(lowest(a), lowest(b)) })
	for i, cpus := range g.sets {
		for cpu := range cpus.All() {
			g.index[cpu] = i
		}
	}
}

func lowest(cpus set.CPUSet) int {
	first, _ := cpus.First()
	return first
}

// add makes a group of a CPU and its siblings; false when they are unknown.
// CPUs that are not online are dropped, for recorded trees are trimmed, and so
// are those of an earlier group.
func (g *groups) add(online set.CPUSet, cpu int, siblings unit.Opt[set.CPUSet]) bool {
	cpus, ok := siblings.Get()
	if !ok {
		return false
	}
	if g.index == nil {
		g.index = map[int]int{}
	}
	cpus = cpus.Intersect(online).With(cpu).Minus(g.taken)
	for other := range cpus.All() {
		g.index[other] = len(g.sets)
	}
	g.taken = g.taken.Union(cpus)
	g.sets = append(g.sets, cpus)
	return true
}
