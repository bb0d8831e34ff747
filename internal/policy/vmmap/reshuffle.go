// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"slices"

	"homenode/internal/machine"
)

// resident is a VM on the board.
type resident struct {
	want
	slot    slot
	movable bool
}

// move is a VM's new slot.
type move struct {
	want
	slot slot
}

// rearrange finds the fewest residents to move so that a VM gets a suitable slot, and they
// get one, too:
//
//  1. Sets of residents are tried in the order of their size, then of their memory. The
//     first that works is taken; of equals the one that leaves the VM nearest. Sets whose
//     removal changes nothing for the VM are skipped.
//  2. The set is taken off the board. The VM tries its suitable slots, the nearest first,
//     and for each slot the residents try theirs, until all have one; else in another order.
//
// The VM is not on the board, and no free slot suits it. If it was on the board it is moved
// itself, and counts as the first move. The search ends with the best result so far once it
// has tried enough (afford).
func (b *board) rearrange(v want, residents []resident, most int) []move {
	b.begin(residents)
	movable, helps := b.candidates(v, residents, most)
	for k := 1; k <= most && len(helps) > 0; k++ {
		var best []move
		for group := range groups(residents, movable, k) { // 1
			if best != nil && bytesOf(residents, group) > sumOf(best[1:]) || !b.afford() {
				break
			}
			if !slices.ContainsFunc(group, func(i int) bool { return slices.Contains(helps, i) }) {
				continue
			}
			plan := b.try(&v, residents, group)
			if plan != nil && (best == nil || nearer(plan[0].slot, best[0].slot)) {
				best = plan
			}
		}
		if best != nil || b.spent() {
			return best
		}
	}
	return nil
}

// candidates returns the residents that can be moved, and among them those whose removal
// may help a VM: it frees CPUs that suit the VM, or memory. A cache's CPUs do not suit it
// while a bad neighbour stays in the cache. One stays if it cannot be moved, or if there
// are more than may be moved.
func (b *board) candidates(v want, residents []resident, most int) (movable, helps []int) {
	leave := make([]int, len(b.caches)) // bad neighbours that can leave, by cache
	for i, r := range residents {
		if !r.movable {
			continue
		}
		movable = append(movable, i)
		if b.cfg.Compatible.of(v.class).of(r.class) > 0 {
			b.eachCache(r.slot, func(k int) { leave[k]++ })
		}
	}
	for _, i := range movable {
		r, may := &residents[i], false
		b.eachCache(r.slot, func(k int) {
			bad := b.bad(v.class, k)
			may = may || bad <= most && bad <= leave[k]
		})
		if may || b.scarce(&v, r) {
			helps = append(helps, i)
		}
	}
	return movable, helps
}

// eachCache visits each cache of a slot once.
func (b *board) eachCache(s slot, visit func(cache int)) {
	for i, g := range s.take {
		if k := b.units[g.unit].cache; !b.seen(s.take[:i], k) {
			visit(k)
		}
	}
}

// bad is the number of VMs in a cache that a class must not be beside.
func (b *board) bad(c Class, cache int) int {
	n, count := b.caches[cache], 0.0
	for _, of := range []Class{Sheep, Rabbit, Devil} {
		if b.cfg.Compatible.of(c).of(of) > 0 {
			count += n.of(of)
		}
	}
	return int(count)
}

// nearer compares two suitable slots.
func nearer(x, y slot) bool {
	return cmp.Or(cmp.Compare(x.span, y.span), cmp.Compare(x.total, y.total)) < 0
}

// relieve finds the fewest residents to move so that a resident that stays has a suitable
// slot where it is: all of its bad neighbours, and others that make room for them.
func (b *board) relieve(stays resident, residents []resident, most int) []move {
	b.begin(residents)
	var bad, rest []int
	for i, r := range residents {
		isBad := b.cfg.Compatible.of(stays.class).of(r.class) > 0 && b.beside(stays.slot, r.slot)
		switch {
		case isBad && !r.movable:
			return nil
		case isBad:
			bad = append(bad, i)
		case r.movable:
			rest = append(rest, i)
		}
	}
	if len(bad) == 0 {
		return nil // one of them cannot be moved
	}
	for k := len(bad); k <= most; k++ {
		for others := range groups(residents, rest, k-len(bad)) {
			if !b.afford() {
				return nil
			}
			group := slices.Sorted(slices.Values(slices.Concat(bad, others)))
			if plan := b.tryAround(stays, residents, group); plan != nil {
				return plan
			}
		}
	}
	return nil
}

func (b *board) tryAround(stays resident, residents []resident, group []int) []move {
	for _, i := range group {
		b.take(residents[i].want, residents[i].slot)
	}
	var plan []move
	if b.besides(stays) == 0 {
		plan = b.placeAny(orders(nil, residents, group))
	}
	for _, i := range group {
		b.put(residents[i].want, residents[i].slot)
	}
	return plan
}

// besides is the cost of the others in a resident's caches.
func (b *board) besides(r resident) float64 {
	b.take(r.want, r.slot)
	cost := b.costOf(r.want, r.slot)
	b.put(r.want, r.slot)
	return cost
}

func (b *board) beside(x, y slot) bool {
	return slices.ContainsFunc(x.take, func(g grant) bool { return b.seen(y.take, b.units[g.unit].cache) })
}

// orders lists the orders in which a VM, if any, and a group may be placed: the VM first,
// then the largest; or the smallest; or the VM last. Each placement decides what is left
// for the next, so one order may work where another does not.
func orders(v *want, residents []resident, group []int) (all [][]want) {
	var others []want
	for _, i := range group {
		others = append(others, residents[i].want)
	}
	slices.SortStableFunc(others, func(x, y want) int {
		return cmp.Or(cmp.Compare(y.cpus, x.cpus), cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.id, y.id))
	})
	back := slices.Clone(others)
	slices.Reverse(back)
	sorts := [][]want{others, back}
	if len(others) < 2 {
		sorts = sorts[:1]
	}
	if v == nil {
		return sorts
	}
	for _, o := range sorts {
		all = append(all, slices.Insert(slices.Clone(o), 0, *v))
	}
	for _, o := range sorts {
		all = append(all, append(slices.Clone(o), *v))
	}
	return all
}

// placeAny returns the plan of the first order that has one. The VM's own move comes first
// if the VM is first in the orders.
func (b *board) placeAny(orders [][]want) []move {
	for _, order := range orders {
		if plan := b.place(order, nil); plan != nil {
			own := slices.IndexFunc(plan, func(m move) bool { return m.id == orders[0][0].id })
			first := plan[own]
			return slices.Insert(slices.Delete(plan, own, own+1), 0, first)
		}
	}
	return nil
}

// try is number 2 for one group, if its removal frees memory, or CPUs that suit the VM.
func (b *board) try(v *want, residents []resident, group []int) (plan []move) {
	any := func(has func(*want, *resident) bool) bool {
		return slices.ContainsFunc(group, func(i int) bool { return has(v, &residents[i]) })
	}
	room := any(b.scarce)
	for _, i := range group {
		b.take(residents[i].want, residents[i].slot)
	}
	if room || any(b.suits) {
		plan = b.placeAny(orders(v, residents, group))
	}
	for _, i := range group {
		b.put(residents[i].want, residents[i].slot)
	}
	return plan
}

// scarce reports that a resident has memory on a node that has too little for a VM.
func (b *board) scarce(v *want, r *resident) bool {
	return r.bytes > 0 && slices.ContainsFunc(r.slot.share, func(sh Share) bool { return b.nodes[sh.Node].room < v.bytes })
}

// suits reports that a cache that a resident was in suits a VM.
func (b *board) suits(v *want, r *resident) bool {
	return slices.ContainsFunc(r.slot.take, func(g grant) bool { return b.neighbours(v.class, g.unit) == 0 })
}

// place gives all of them suitable slots, and backtracks where one finds none.
func (b *board) place(all []want, done []move) []move {
	if len(all) == 0 {
		return slices.Clone(done)
	}
	v := all[0]
	for _, s := range b.suitable(v) {
		if !b.afford() {
			return nil
		}
		b.put(v, s)
		plan := b.place(all[1:], append(done, move{v, s}))
		b.take(v, s)
		if plan != nil {
			return plan
		}
	}
	return nil
}

// mostSlots is the most slots of a VM that a rearrangement tries. Four nodes have fewer.
const mostSlots = 64

// suitable returns the suitable slots of a VM, the best first.
func (b *board) suitable(v want) []slot {
	_, level := b.nearest(v)
	var all []slot
	var crowd []float64
	s := b.newSearch(v, true, level)
	s.visit = func(x slot) bool {
		all, crowd = append(all, x), append(crowd, b.preference(v, x))
		return len(all) < mostSlots
	}
	s.all()
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case b.prefers(all[x], crowd[x], all[y], crowd[y]):
			return -1
		case b.prefers(all[y], crowd[y], all[x], crowd[x]):
			return 1
		}
		return 0
	})
	sorted := make([]slot, len(all))
	for k, i := range order {
		sorted[k] = all[i]
	}
	return sorted
}

// find is stage 1 for a VM that is not on the board: a suitable slot, else one that few
// moves free, else the least bad. The plan moves the others; its last move is the VM's own.
// An empty plan: there is no room at all.
func (b *board) find(v want, residents []resident, most int) (plan []move, suits bool) {
	if b.short(v) {
		return nil, false // no move helps
	}
	_, level := b.nearest(v)
	b.tries = 0
	if s := b.best(v, true, level); !s.none() {
		return []move{{v, s}}, true
	}
	b.tries = 0
	last := b.best(v, false, machine.Beyond) // the least bad
	if plan = b.rearrange(v, residents, most); plan != nil {
		return slices.Concat(plan[1:], plan[:1]), true
	}
	if last.none() {
		return nil, false
	}
	return []move{{v, last}}, false
}

// short reports that there are fewer free CPUs than it needs, or less memory.
func (b *board) short(v want) bool {
	cpus, room := 0, 0.0
	for _, n := range b.nodes {
		cpus += n.free
		room += max(0, n.room)
	}
	return cpus < v.cpus || !fits(v.bytes, room)
}
