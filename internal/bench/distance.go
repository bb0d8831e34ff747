// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// apart is the distance between the CPUs of a couple.
type apart struct {
	level    profile.Level
	distance unit.Opt[int]
}

// couple are two CPUs.
type couple struct {
	cpus [2]int
	apart
}

var levels = []profile.Level{profile.SameCore, profile.SameLLC, profile.SameNode, profile.Between}

// apartOf uses the firmware's topology; a last-level cache that is not in it is not
// shared.
func apartOf(m machine.Machine, a, b machine.CPU) apart {
	na, ok1 := a.Node.Get()
	nb, ok2 := b.Node.Get()
	if ok1 && ok2 && na != nb {
		return apart{profile.Between, m.Distance(na, nb)}
	}
	d := unit.Some(machine.LocalDistance)
	switch {
	case a.Core.Known() && a.Core == b.Core:
		return apart{profile.SameCore, d}
	case a.LLC.Known() && a.LLC == b.LLC:
		return apart{profile.SameLLC, d}
	}
	return apart{profile.SameNode, d}
}

// couples are a few of each distance, from near to far, spread over the machine.
func (b *bench) couples(most int) []couple {
	groups := map[apart][]couple{}
	ids := b.allowed().IDs()
	for i, x := range ids {
		cx, _ := b.m.CPU(x)
		for _, y := range ids[i+1:] {
			cy, _ := b.m.CPU(y)
			a := apartOf(b.m, cx, cy)
			groups[a] = append(groups[a], couple{[2]int{x, y}, a})
		}
	}
	var all []couple
	for _, g := range groups {
		n := min(most, len(g))
		for i := range n {
			all = append(all, g[i*len(g)/n])
		}
	}
	slices.SortFunc(all, func(a, b couple) int {
		return cmp.Or(
			cmp.Compare(slices.Index(levels, a.level), slices.Index(levels, b.level)),
			cmp.Compare(a.distance.Or(256), b.distance.Or(256)),
			cmp.Compare(a.cpus[0], b.cpus[0]), cmp.Compare(a.cpus[1], b.cpus[1]))
	})
	return all
}

func cpusOfCouples(all []couple) [][2]int {
	keys := make([][2]int, len(all))
	for i, c := range all {
		keys[i] = c.cpus
	}
	return keys
}
