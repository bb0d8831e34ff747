// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// kindNames are the PMUs of hybrid x86 CPUs, by their kind (arch/x86/events/intel/core.c).
var kindNames = []string{"core", "atom", "lowpower"}

// kinds sorts the CPUs of a hybrid machine by kind, from
//
//	/sys/devices/cpu_core/cpus                   0-11    since 5.13, hybrid x86 only
//	/sys/devices/cpu_atom/cpus                   12-19
//	/sys/devices/system/cpu/cpu0/cpu_capacity    446     since 4.13 (Arm), 6.12 (hybrid x86)
//
// Unit: CPU ids; capacity relative to the machine's largest CPU, which has 1024.
//
//  1. The PMUs decide where there are some: favoured cores of one kind differ in capacity.
//  2. Else CPUs of one capacity are a kind.
//  3. One kind for all CPUs says nothing and is left out.
func (t *tree) kinds(m *Machine) {
	capacity := t.capacities(m)
	for _, name := range kindNames { // 1
		if cpus, ok := load(t, "sys/devices/cpu_"+name+"/cpus", parseCPUList).Get(); ok && cpus.Overlaps(t.online) {
			cpus = cpus.Intersect(t.online)
			m.Kinds = append(m.Kinds, CPUKind{name, cpus, common(capacity, cpus)})
		}
	}
	if len(m.Kinds) == 0 { // 2
		by := map[int]set.CPUSet{}
		for cpu, c := range capacity {
			by[c] = by[c].With(cpu)
		}
		for c, cpus := range by {
			m.Kinds = append(m.Kinds, CPUKind{CPUs: cpus, Capacity: unit.Some(c)})
		}
	}
	if len(m.Kinds) == 1 { // 3
		m.Kinds = nil
	}
	sortKinds(m.Kinds)
}

func sortKinds(kinds []CPUKind) {
	slices.SortFunc(kinds, func(a, b CPUKind) int { return cmp.Compare(lowest(a.CPUs), lowest(b.CPUs)) })
}

// capacities by CPU; none where the first CPU has no such file.
func (t *tree) capacities(m *Machine) map[int]int {
	all := map[int]int{}
	for cpu := range t.online.All() {
		c, ok := t.id(cpuPath(cpu, "cpu_capacity")).Get()
		if !ok && len(all) == 0 {
			return nil
		}
		if ok && c > maxCapacity {
			t.malformed(cpuPath(cpu, "cpu_capacity"), fmt.Errorf("line 1: capacity %d: want up to %d", c, maxCapacity))
		} else if ok {
			all[cpu] = c
		}
	}
	return all
}

// maxCapacity is 16 times SCHED_CAPACITY_SCALE, the most that a kernel prints: trees made
// by hand have a little more than that.
const maxCapacity = 16 << 10

// common is the capacity that all of these CPUs have.
func common(capacity map[int]int, cpus set.CPUSet) unit.Opt[int] {
	first, ok := capacity[lowest(cpus)]
	for cpu := range cpus.All() {
		c, known := capacity[cpu]
		ok = ok && known && c == first
	}
	return unit.OptOf(first, ok)
}
