// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"math/bits"
	"slices"
)

// mostSteps bounds the exact solver: some seconds.
const mostSteps = 20_000_000

// Exact places the most containers of all packings in which each meets its goal, on the fewest
// nodes of those that place as many.
//
//  1. Containers with the same sites are one class: which copy is where makes no difference.
//  2. The lowest free node stays empty, or is in the site of some container: both are tried,
//     the rest is packed the same way, and a rest that was packed before is not packed again.
//  3. A site that has another one's nodes and more is not tried (least): giving nodes back
//     never prevents a packing.
//
// With more than mostSteps sites tried it stops. The packing is then the better one of ML's and
// its own, and Partial.
func (p *Problem) Exact() Packing {
	x := exact{p: p, done: map[string]found{}}
	x.classes()
	best := x.solve(p.allNodes())
	b := p.start(NameExact)
	for at := best; at.next != nil; at = *at.next {
		b.put(x.draw(b, at))
	}
	if b.out.Partial = x.steps > mostSteps; b.out.Partial {
		if ml := p.ML(); len(ml.Placed) > len(b.out.Placed) {
			ml.Policy, ml.Partial = NameExact, true
			return ml
		}
	}
	return b.out
}

type exact struct {
	p     *Problem
	sites [][]site // by class
	of    [][]int  // containers of a class
	left  []int    // copies, by class
	done  map[string]found
	steps int
}

// found is the best packing of a rest: its first site, and the next.
type found struct {
	placed, nodes int
	class         int
	site          site
	next          *found // nil: nothing is placed
}

// classes is number 1.
func (x *exact) classes() {
	at := map[string]int{}
	for i, c := range x.p.Containers {
		sites := x.p.meeting(c)
		if len(sites) == 0 {
			continue
		}
		slices.SortFunc(sites, func(a, b site) int { return cmp.Compare(a.mask, b.mask) })
		var key []byte
		for _, s := range sites {
			key = appendMask(key, s.mask)
		}
		class, ok := at[string(key)]
		if !ok {
			class = len(at)
			at[string(key)] = class
			x.sites, x.of, x.left = append(x.sites, sites), append(x.of, nil), append(x.left, 0)
		}
		x.of[class], x.left[class] = append(x.of[class], i), min(x.left[class]+c.Count, len(x.p.nodes))
	}
}

func appendMask(b []byte, mask uint64) []byte {
	for range 8 {
		b, mask = append(b, byte(mask)), mask>>8
	}
	return b
}

// solve is number 2.
func (x *exact) solve(free uint64) found {
	if free == 0 {
		return found{}
	}
	key := x.key(free)
	if f, ok := x.done[key]; ok {
		return f
	}
	node := lowest(free)
	best := x.solve(free &^ node)
	for class, sites := range x.sites {
		if x.left[class] == 0 {
			continue
		}
		for _, s := range sites {
			if s.mask&node == 0 || s.mask&^free != 0 {
				continue
			}
			if x.steps++; x.steps > mostSteps {
				return best
			}
			x.left[class]--
			rest := x.solve(free &^ s.mask)
			x.left[class]++
			one := found{placed: rest.placed + 1, nodes: rest.nodes + s.size, class: class, site: s, next: &rest}
			if one.placed > best.placed || one.placed == best.placed && one.nodes < best.nodes {
				best = one
			}
		}
	}
	x.done[key] = best
	return best
}

func lowest(mask uint64) uint64 { return 1 << bits.TrailingZeros64(mask) }

func (x *exact) key(free uint64) string {
	key := appendMask(nil, free)
	for _, n := range x.left {
		key = append(key, byte(n))
	}
	return string(key)
}

// draw is the next container of a class that has a copy left, and its own site on these nodes:
// another container of the class may be spread over them in another way.
func (x *exact) draw(b *builder, at found) (container int, s site) {
	of := x.of[at.class]
	container = of[slices.IndexFunc(of, func(i int) bool { return b.out.Left[i] > 0 })]
	for _, s := range x.p.meeting(x.p.Containers[container]) {
		if s.mask == at.site.mask {
			return container, s
		}
	}
	return container, at.site
}
