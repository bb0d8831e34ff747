// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/machine"
)

// A slot for a VM of given CPUs and bytes is defined so:
//
//  1. A set of nodes that together have enough free CPUs and memory, and would not without
//     any one of them. In strict mode only the CPUs of caches whose neighbours are all
//     compatible count, else all do.
//  2. It takes all of these CPUs of its nodes except the last node, where it takes the
//     rest. Any node may be the last. So a VM larger than a node has whole nodes.
//  3. In a node it takes CPUs of the caches with the best neighbours, then the fewest,
//     then the fullest caches (for sheep: the least full that is enough), then in order.
//  4. Memory is spread over its nodes in proportion to their room.
//
// Slots are ordered by a smaller span; then a smaller sum of distances; then better
// neighbours; then a shorter way for its memory. After that, a sheep fills up what is left
// of the fullest nodes, which does not slow it, and any other VM gets the least crowded
// caches. Last comes the node with the lowest number.

// search enumerates the slots of one VM.
type search struct {
	b      *board
	v      want
	strict bool
	usable []int // CPUs by node
	limit  int   // largest distance between two nodes
	level  machine.Level
	set    []int
	visit  func(slot) bool // false: stop
	bound  func(total int) bool
	over   bool
}

// best is the best slot of a VM: nearest first, by the comment above. level is the farthest
// that is allowed.
func (b *board) best(v want, strict bool, level machine.Level) slot {
	var best slot
	var crowd float64
	s := b.newSearch(v, strict, level)
	total := math.MaxInt
	s.bound = func(t int) bool { return t <= total }
	s.visit = func(x slot) bool {
		c := b.preference(v, x)
		if best.none() || b.prefers(x, c, best, crowd) {
			best, crowd, total = x, c, x.total
		}
		return true
	}
	for _, d := range b.steps {
		if s.limit = d; d == machine.LocalDistance {
			s.singles()
		} else if level > machine.SameNode {
			s.near()
			s.sets()
		}
		if !best.none() {
			return best
		}
	}
	return best
}

// preference decides between slots that are equally near and have equally good neighbours;
// less is better.
func (b *board) preference(v want, s slot) (sum float64) {
	for i, g := range s.take {
		if !b.seen(s.take[:i], b.units[g.unit].cache) {
			sum += b.crowd(g.unit)
		}
	}
	left := 0
	for _, n := range s.share {
		left += b.nodes[n.Node].free
	}
	if v.class == Sheep {
		sum = float64(left - v.cpus)
	} else {
		sum += float64(float64(left-v.cpus) / 4096) // CPUs that it leaves free there count last
	}
	return sum + float64(b.journey(v, s)*(1<<20))
}

// journey is the mean distance of its memory from a slot, in whole local distances: 1 is
// there, 2 elsewhere in the server. Finer differences are not worth a crowd.
func (b *board) journey(v want, s slot) float64 {
	sum := 0.0
	for _, from := range v.at {
		near := math.MaxInt
		for _, to := range s.share {
			near = min(near, b.far[from.Node][to.Node])
		}
		sum += float64(from.Of * float64(near))
	}
	return math.Round(sum / machine.LocalDistance)
}

func (b *board) prefers(x slot, crowd float64, y slot, than float64) bool {
	return cmp.Or(cmp.Compare(x.span, y.span), cmp.Compare(x.total, y.total), cmp.Compare(x.cost, y.cost), cmp.Compare(crowd, than)) < 0
}

func (b *board) newSearch(v want, strict bool, level machine.Level) *search {
	s := &search{b: b, v: v, strict: strict, level: level, limit: math.MaxInt, usable: make([]int, len(b.nodes))}
	for k, u := range b.units {
		if !strict || b.neighbours(v.class, k) == 0 {
			s.usable[u.node] += u.free
		}
	}
	s.bound = func(int) bool { return true }
	return s
}

// all calls visit with every slot up to a level; sets by size, single nodes first.
func (s *search) all() {
	if s.singles(); s.level > machine.SameNode && !s.over {
		s.sets()
	}
}

func (s *search) singles() {
	for i, n := range s.b.nodes {
		if s.usable[i] >= s.v.cpus && fits(s.v.bytes, max(0, n.room)) && !s.over {
			s.offer([]int{i})
		}
	}
}

// near tries one set from each node: always the nearest node next, and among those the one
// with most CPUs. A good slot found early tightens the bound where there are too many sets
// to try all.
func (s *search) near() {
	for first := range s.b.nodes {
		s.set = append(s.set[:0], first)
		cpus, room := s.usable[first], max(0, s.b.nodes[first].room)
		for cpus < s.v.cpus || !fits(s.v.bytes, room) {
			next, least := -1, math.MaxInt
			for i := range s.b.nodes {
				d, ok := s.joins(i)
				if !ok || slices.Contains(s.set, i) || s.usable[i] <= 0 && cpus < s.v.cpus {
					continue
				}
				if d < least || d == least && s.usable[i] > s.usable[next] {
					next, least = i, d
				}
			}
			if next < 0 {
				break
			}
			s.set = append(s.set, next)
			cpus, room = cpus+s.usable[next], room+max(0, s.b.nodes[next].room)
		}
		if cpus >= s.v.cpus && fits(s.v.bytes, room) && len(s.set) > 1 && s.needed(cpus, room) {
			s.offer(s.set)
		}
	}
	s.set = s.set[:0]
}

// sets visits each set of two nodes and more whose pairs are near enough, once.
func (s *search) sets() {
	cpus, room := make([]int, len(s.b.levels.Servers)), make([]float64, len(s.b.levels.Servers))
	for i, n := range s.b.nodes {
		cpus[n.server] += s.usable[i]
		room[n.server] += max(0, n.room)
	}
	order := slices.DeleteFunc(s.nodesByUse(), func(i int) bool {
		n := &s.b.nodes[i]
		small := s.level < machine.Beyond && (cpus[n.server] < s.v.cpus || !fits(s.v.bytes, room[n.server]))
		return small || s.usable[i] <= 0 && n.room <= 0
	})
	s.grow(order, 0, 0, 0, 0)
}

func (s *search) nodesByUse() []int {
	order := make([]int, len(s.b.nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		bare := cmp.Compare(min(1, s.usable[y]), min(1, s.usable[x])) // memory alone: last
		return cmp.Or(bare, cmp.Compare(s.b.nodes[x].server, s.b.nodes[y].server), cmp.Compare(s.usable[y], s.usable[x]))
	})
	return order
}

// grow adds nodes from order, depth first. A set that is enough is offered and not grown.
func (s *search) grow(order []int, cpus int, room float64, total, from int) {
	if s.over || !s.b.afford() {
		return
	}
	if cpus >= s.v.cpus && fits(s.v.bytes, room) {
		if len(s.set) > 1 && s.needed(cpus, room) {
			s.offer(s.set)
		}
		return
	}
	if s.short(order[from:], cpus, room) {
		return
	}
	for k := from; k < len(order); k++ {
		i := order[k]
		added, ok := s.joins(i)
		if !ok || !s.bound(total+added) {
			continue
		}
		s.set = append(s.set, i)
		s.grow(order, cpus+s.usable[i], room+max(0, s.b.nodes[i].room), total+added, k+1)
		s.set = s.set[:len(s.set)-1]
	}
}

// short reports that even all remaining nodes would not be enough.
func (s *search) short(left []int, cpus int, room float64) bool {
	for _, i := range left {
		if _, ok := s.joins(i); ok {
			cpus += s.usable[i]
			room += max(0, s.b.nodes[i].room)
		}
		if cpus >= s.v.cpus && fits(s.v.bytes, room) {
			return false
		}
	}
	return true
}

// joins is the distance to all nodes of the set, if none is too far.
func (s *search) joins(i int) (sum int, ok bool) {
	for _, j := range s.set {
		d := s.b.far[i][j]
		if d > s.limit || s.level < machine.Beyond && s.b.nodes[i].server != s.b.nodes[j].server {
			return 0, false
		}
		sum += d
	}
	return sum, true
}

// needed reports that no node of the set could be left out.
func (s *search) needed(cpus int, room float64) bool {
	for _, i := range s.set {
		if cpus-s.usable[i] >= s.v.cpus && fits(s.v.bytes, room-max(0, s.b.nodes[i].room)) {
			return false
		}
	}
	return true
}

// offer visits the slots of a set: one for each node that may be the last.
func (s *search) offer(set []int) {
	for k := range set {
		if s.over {
			return
		}
		if x, ok := s.slot(set, k); ok {
			s.over = !s.visit(x)
		}
	}
}

// slot is numbers 2 to 4. The last node gives the rest. If nothing is left for it, another
// set has this slot, unless the node is there for memory.
func (s *search) slot(set []int, last int) (slot, bool) {
	b, left := s.b, s.v.cpus
	x := slot{take: make([]grant, 0, len(set)+1), share: make([]Share, 0, len(set))}
	for k, i := range set {
		if k != last {
			left = s.fill(&x, i, left)
		}
	}
	if left = s.fill(&x, set[last], left); left > 0 {
		return slot{}, false
	}
	slices.SortFunc(x.take, func(a, b grant) int { return a.unit - b.unit })
	room := 0.0
	for _, i := range set {
		room += max(0, b.nodes[i].room)
	}
	for _, i := range set {
		of := 1 / float64(len(set))
		if room > 0 {
			of = max(0, b.nodes[i].room) / room
		}
		x.share = append(x.share, Share{i, of})
	}
	b.span(&x, set)
	if !s.strict {
		x.cost = b.costOf(s.v, x)
	}
	return x, true
}

// fill is number 3: it takes CPUs of a node, and returns how many are still to get.
func (s *search) fill(x *slot, node, left int) int {
	b := s.b
	units := b.nodes[node].units
	if len(units) > 1 {
		units = slices.Clone(units)
		slices.SortStableFunc(units, func(p, q int) int {
			return cmp.Or(cmp.Compare(b.neighbours(s.v.class, p), b.neighbours(s.v.class, q)), s.order(p, q, left))
		})
	}
	for _, k := range units {
		if s.strict && b.neighbours(s.v.class, k) > 0 {
			continue
		}
		if n := min(left, b.units[k].free); n > 0 {
			x.take = append(x.take, grant{k, n})
			left -= n
		}
	}
	return left
}

// order compares units with equally good neighbours.
func (s *search) order(p, q, left int) int {
	b := s.b
	if s.v.class == Sheep {
		tight := func(k int) int { // enough, with the least left over; else the largest
			if f := b.units[k].free; f >= left {
				return f
			}
			return 2*left + 4096 - b.units[k].free
		}
		return cmp.Compare(tight(p), tight(q))
	}
	return cmp.Or(cmp.Compare(b.crowd(p), b.crowd(q)), cmp.Compare(b.units[q].free, b.units[p].free))
}
