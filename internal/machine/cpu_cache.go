// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"
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

// caches returns the data and unified caches of one CPU, from
//
//	/sys/devices/system/cpu/cpuN/cache/index*/{level,type,id,size,shared_cpu_list}
//
// Unit: level counts from 1; id since 4.11 (x86), per level. A cache that does
// not tell its level, its type or its CPUs is unknown, and left out.
func (t *tree) caches(cpu int) []Cache {
	var caches []Cache
	dir := cpuPath(cpu, "cache")
	for _, i := range t.ids(dir, "index") {
		index := fmt.Sprintf("%s/index%d/", dir, i)
		kind, ok := load(t, index+"type", parseCacheType).Get()
		level, ok2 := t.id(index + "level").Get()
		cpus, ok3 := t.cpuList(index+"shared_cpu_list", index+"shared_cpu_map").Get()
		if !ok || !ok2 || !ok3 || kind == "Instruction" {
			continue
		}
		size := load(t, index+"size", parseCacheSize)
		caches = append(caches, Cache{Level: level, ID: t.id(index + "id"), CPUs: cpus, Size: size})
	}
	return caches
}

// allCaches fills in every online CPU's L2 and LLC.
func (t *tree) allCaches(m *Machine) {
	var l2, llc cacheGroups
	for i := range m.CPUs {
		c := &m.CPUs[i]
		if !c.Online {
			continue
		}
		last := Cache{}
		for _, cache := range t.caches(c.ID) {
			if cache.Level == 2 {
				c.L2 = l2.of(t.online, c.ID, cache)
			}
			if cache.Level > last.Level {
				last = cache
			}
		}
		if last.Level > 1 { // a private L1 alone says nothing about the last level
			c.LLC = llc.of(t.online, c.ID, last)
		}
	}
	m.L2s, m.LLCs = l2.caches, llc.caches
}

// cacheGroups numbers caches by the CPUs they serve, as groups does.
type cacheGroups struct {
	groups
	caches []Cache
}

func (g *cacheGroups) of(online set.CPUSet, cpu int, c Cache) unit.Opt[int] {
	i := g.groups.of(online, cpu, unit.Some(c.CPUs))
	if len(g.sets) > len(g.caches) {
		c.CPUs = g.sets[len(g.caches)]
		g.caches = append(g.caches, c)
	}
	return i
}
