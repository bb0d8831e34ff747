// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// parseCacheSize reads
//
//	/sys/devices/system/cpu/cpu0/cache/index0/size   32K
//	/sys/devices/system/cpu/cpu0/cache/index3/size   6144K
//
// Unit: K is KiB. Since 2.6.11 (x86), 3.15 for all (drivers/base/cacheinfo.c).
func parseCacheSize(text string) (unit.Bytes, error) {
	digits, ok := strings.CutSuffix(text, "K")
	if !ok || !isDigits(digits) {
		return 0, fieldError(1, 1, text)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit.KiB) {
		return 0, fieldError(1, 1, text)
	}
	return unit.Bytes(n) * unit.KiB, nil
}

// parseCacheType reads cache/index*/type: Data, Instruction or Unified.
func parseCacheType(text string) (string, error) {
	switch text {
	case "Data", "Instruction", "Unified":
		return text, nil
	}
	return "", fmt.Errorf("line 1 %s: want Data, Instruction or Unified", clip(text))
}

// Kernels list L1d, L1i, L2 and L3, rarely an L4; level and index stay below 10.
const (
	maxCacheIndex = 9
	usualIndexes  = 3 // up to here a missing one is a gap, beyond it the end
)

// leaf is the meaning of cache/indexN. All CPUs of a machine list their caches in one
// order, as far as they have them.
type leaf struct {
	cacheKind      // level 0: unknown
	noIDs     bool // shows no id, or nothing needs it
}

// cacheKind is what a cache is one of. There are instruction caches at level 1; at a higher
// level (Itanium) nothing asks for them.
type cacheKind struct {
	level int
	instr bool
}

// caches reads the caches of one CPU, from
//
//	/sys/devices/system/cpu/cpuN/cache/index*/{level,type,id,size,shared_cpu_map}
//
// Unit: level counts from 1; id since 4.11 (x86), per level. A cache that does not show
// its level or its CPUs is unknown, and left out; one without a type is taken for
// unified. ia64 kernels print an empty shared_cpu_map for a cache that belongs to one
// core. Two things are not read again: what the first CPU shows of types, and what
// earlier CPUs share with this one.
func (t *tree) caches(m *Machine, levels map[cacheKind]*cacheGroups, c CPU) {
	has := func(l leaf) bool { return levels[l.cacheKind] != nil && levels[l.cacheKind].has(c.ID) }
	for i := range t.indexes() {
		known, seen := t.leaves[i]
		if seen && (known.level > 1 && known.instr || has(known)) {
			continue
		}
		index := cpuPath(c.ID, "cache/index") + strconv.Itoa(i) + "/"
		level, ok := t.id(index + "level").Get()
		if !ok && !seen && i >= usualIndexes {
			break
		}
		if !ok {
			continue
		}
		if !seen || known.level != level {
			if known = t.leaf(index, level); known.level == 0 {
				continue
			}
			t.leaves[i] = known
		}
		if !(known.level > 1 && known.instr) && !has(known) {
			t.cache(m, levels, c, i, index)
		}
	}
	t.asked = true
}

// leaf reads what kind of cache an index is; a level that no kernel lists is unknown.
func (t *tree) leaf(index string, level int) leaf {
	if level < 1 || level > maxCacheIndex {
		t.malformed(index+"level", fmt.Errorf("line 1: level %d: want 1 to %d", level, maxCacheIndex))
		return leaf{}
	}
	instr := load(t, index+"type", parseCacheType).Or("Unified") == "Instruction"
	return leaf{cacheKind: cacheKind{level, instr}, noIDs: level == 1}
}

// indexes is the number of indexes to read for a CPU: all for the first CPU; for another
// those that may follow; one where there was none.
func (t *tree) indexes() int {
	if !t.asked {
		return maxCacheIndex + 1
	}
	last := 0
	for i := range t.leaves {
		last = max(last, i, usualIndexes)
	}
	return last + 1
}

// cache reads one cache's CPUs, size and id.
func (t *tree) cache(m *Machine, levels map[cacheKind]*cacheGroups, c CPU, i int, index string) {
	cpus, ok := t.listOf(c.ID, index+"shared_cpu_map").Get()
	if !ok {
		cpus, ok = t.listOf(c.ID, index+"shared_cpu_list").Get()
	}
	if !ok {
		return
	}
	if core, ok := c.Core.Get(); ok && cpus.IsEmpty() {
		cpus = m.Cores[core]
	}
	size := load(t, index+"size", parseCacheSize)
	if size == unit.Some[unit.Bytes](0) { // no cache is that small: the kernel does not know
		size = unit.None[unit.Bytes]()
	}
	l, id := t.leaves[i], unit.None[int]()
	if !l.noIDs {
		id = t.id(index + "id")
		l.noIDs = !id.Known()
		t.leaves[i] = l
	}
	if levels[l.cacheKind] == nil {
		levels[l.cacheKind] = &cacheGroups{}
	}
	levels[l.cacheKind].addCache(t.online, c.ID, Cache{Level: l.level, Instr: l.instr, ID: id, CPUs: cpus, Size: size})
}

// allCaches fills in every online CPU's L2 and LLC, and lists the caches that are neither.
//
//  1. Ask the first CPU of each core. Its siblings are in the same caches.
//  2. Ask those that turned out not to be.
//  3. A CPU's LLC is the highest level it has; a private L1 alone says nothing
//     about the last level.
func (t *tree) allCaches(m *Machine) {
	levels := map[cacheKind]*cacheGroups{}
	for _, c := range m.CPUs { // 1
		if c.Online && t.first(m, c) == c.ID {
			t.caches(m, levels, c)
		}
	}
	for _, c := range m.CPUs { // 2
		for _, g := range levels {
			if c.Online && g.has(t.first(m, c)) && !g.has(c.ID) {
				t.caches(m, levels, c)
				break
			}
		}
	}
	m.setCaches(levels) // 3
}

// setCaches fills in L2s, LLCs and Inner from the caches of each kind.
func (m *Machine) setCaches(levels map[cacheKind]*cacheGroups) {
	for _, g := range levels {
		g.sort()
	}
	if g := levels[cacheKind{level: 2}]; g != nil {
		m.L2s = g.caches
		for i := range m.CPUs {
			m.CPUs[i].L2 = g.of(m.CPUs[i].ID)
		}
	}
	lastLevels(m, levels)
	m.innerCaches(levels)
}

// innerCaches lists what is neither an L2 nor the last level of any of its CPUs, by level.
func (m *Machine) innerCaches(levels map[cacheKind]*cacheGroups) {
	for level := 1; level <= maxCacheIndex; level++ {
		for _, instr := range []bool{false, true} {
			g := levels[cacheKind{level, instr}]
			if g == nil || level == 2 {
				continue
			}
			for _, c := range g.caches {
				if !m.isLast(c) {
					m.Inner = append(m.Inner, c)
				}
			}
		}
	}
}

func (m *Machine) isLast(c Cache) bool {
	return slices.ContainsFunc(m.LLCs, func(l Cache) bool { return l.Level == c.Level && l.CPUs.Overlaps(c.CPUs) })
}

// first is the first CPU of a CPU's core.
func (t *tree) first(m *Machine, c CPU) int {
	core, ok := c.Core.Get()
	if !ok {
		return c.ID
	}
	return lowest(m.Cores[core])
}

// lastLevels numbers the LLCs by their lowest CPU. A cache that is the last level
// of some of its CPUs only (hybrid CPUs) is listed with those.
func lastLevels(m *Machine, levels map[cacheKind]*cacheGroups) {
	number := map[[2]int]int{}
	for i := range m.CPUs {
		c := &m.CPUs[i]
		for level := maxCacheIndex; level > 1; level-- {
			g := levels[cacheKind{level: level}]
			if g == nil || !g.has(c.ID) {
				continue
			}
			key := [2]int{level, g.index[c.ID]}
			n, listed := number[key]
			if !listed {
				n = len(m.LLCs)
				number[key] = n
				m.LLCs = append(m.LLCs, g.caches[key[1]])
				m.LLCs[n].CPUs = set.CPUSet{}
			}
			m.LLCs[n].CPUs = m.LLCs[n].CPUs.With(c.ID)
			c.LLC = unit.Some(n)
			break
		}
	}
}

// cacheGroups numbers the caches of one level by the CPUs they serve, as groups does.
type cacheGroups struct {
	groups
	caches []Cache
}

// sort renumbers the caches by their lowest CPU.
func (g *cacheGroups) sort() {
	g.groups.sort()
	slices.SortFunc(g.caches, func(a, b Cache) int { return cmp.Compare(lowest(a.CPUs), lowest(b.CPUs)) })
}

func (g *cacheGroups) addCache(online set.CPUSet, cpu int, c Cache) {
	g.add(online, cpu, unit.Some(c.CPUs))
	c.CPUs = g.sets[len(g.sets)-1]
	g.caches = append(g.caches, c)
}
