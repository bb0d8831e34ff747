// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"slices"
)

// The four policies of Funston et al. The paper packs copies of one container: as many as a
// policy places are on the machine at once. What it does not say is decided here, and in
// docs/decisions/0062.

// All are the packings of the four policies, and of the exact solver.
func (p *Problem) All() []Packing {
	return []Packing{p.ML(), p.Conservative(), p.Aggressive(), p.SmartAggressive(), p.Exact()}
}

// ML places by predicted or measured speed (the paper: the fewest nodes whose predicted
// performance meets the goal, then as many copies as fit).
//
//  1. A container may be on the sites where it meets its goal (Problem.Meets).
//  2. Of all containers and their free sites, that on the fewest nodes is next; of these the
//     one that takes away the fewest sites from what is still to be placed, then the first.
//  3. Until nothing more fits.
func (p *Problem) ML() Packing {
	b := p.start(NameML)
	sites := make([][]site, len(p.Containers)) // 1
	for i, c := range p.Containers {
		sites[i] = p.meeting(c)
	}
	for {
		container, at, ok := b.next(sites)
		if !ok {
			return b.out
		}
		b.put(container, at)
	}
}

// next is number 2.
func (b *builder) next(sites [][]site) (container int, best site, ok bool) {
	free, most := b.open(sites)
	least := 0
	for i, all := range free {
		for _, s := range all {
			if s.size > most {
				continue
			}
			taken := 0
			for j, others := range free {
				taken += min(b.out.Left[j], 2) * touching(others, s.mask)
			}
			if !ok || taken < least {
				container, best, least, ok = i, s, taken, true
			}
		}
	}
	return container, best, ok
}

// open are the sites that are free, of containers that are left, and the fewest nodes that
// one of them has.
func (b *builder) open(sites [][]site) (free [][]site, fewest int) {
	free, fewest = make([][]site, len(sites)), 1<<30
	for i, all := range sites {
		if b.out.Left[i] == 0 {
			continue
		}
		for _, s := range all {
			if s.mask&^b.free == 0 {
				free[i], fewest = append(free[i], s), min(fewest, s.size)
			}
		}
	}
	return free, fewest
}

func touching(sites []site, mask uint64) (n int) {
	for _, s := range sites {
		if s.mask&mask != 0 {
			n++
		}
	}
	return n
}

// Conservative knows nothing: one container has the whole machine, unpinned. The first one.
func (p *Problem) Conservative() Packing {
	b := p.start(NameConservative)
	b.putUnpinned(0)
	return b.out
}

// Aggressive places as many containers as the machine has CPUs for, in their order, unpinned.
func (p *Problem) Aggressive() Packing {
	b := p.start(NameAggressive)
	free := p.Machine.OnlineCPUs().Len()
	for i, c := range p.Containers {
		for b.out.Left[i] > 0 && c.VCPUs <= free {
			free -= c.VCPUs
			b.putUnpinned(i)
		}
	}
	return b.out
}

// SmartAggressive places as many containers as fit, in their order, each pinned to the fewest
// nodes that hold it; of free sets of that size, to the one of the highest interconnect score.
// It asks for no goal.
func (p *Problem) SmartAggressive() Packing {
	b := p.start(NameSmartAggressive)
	for i, c := range p.Containers {
		sites := bySize(p.lists[c.VCPUs].sites)
		for b.out.Left[i] > 0 {
			at := slices.IndexFunc(sites, func(s site) bool { return s.size == sites[0].size && s.mask&^b.free == 0 })
			if at < 0 {
				break
			}
			b.put(i, sites[at])
		}
	}
	return b.out
}

// bySize are sites with the fewest nodes first, then the highest joint scores, then the most
// of everything else: Linux spreads threads over idle cores.
func bySize(sites []site) []site {
	sorted := slices.Clone(sites)
	slices.SortStableFunc(sorted, func(a, b site) int {
		c := a.size - b.size
		for i := len(a.Scores) - 1; i >= 0 && c == 0; i-- { // joint concerns are last
			c = cmp.Compare(b.Scores[i].Value, a.Scores[i].Value)
		}
		return c
	})
	return sorted
}
