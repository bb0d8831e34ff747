// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"math/bits"
	"slices"
)

// packer finds all packings of a machine's nodes that no other dominates (Funston et al.
// §4, steps 2 and 3), in one pass over sets of nodes instead of one over packings.
//
//  1. A set of nodes is packed by choosing the block of its lowest node, or leaving that
//     node empty, and packing the rest. A rest that was packed before is not packed again.
//  2. Of the packings of a set only those stay that no other with the same sizes
//     dominates: adding the same block to both keeps their order.
//  3. Sets that are the same up to symmetry are packed once; so are blocks within a set.
//  4. A packing is complete if no block would fit in what it leaves empty. The strict
//     reading leaves nothing empty.
type packer struct {
	*input
	sym    *symmetry
	done   map[state]front
	steps  int // blocks tried
	cut    int // sets of which only the best block of each size was tried, after maxSteps
	strict bool
}

// state is a set of nodes, up to symmetry, and how many nodes of each kind are empty.
type state struct {
	orbit int
	empty string
}

// input is what packings depend on.
type input struct {
	n     int
	kinds []int // by node
	sizes []int // of blocks, ascending
	fits  []map[int][]string
	joint []Weights
}

// colours of nodes while a block grows.
const (
	gone byte = iota
	rest
	chosen
)

func (p *packer) pack(mask uint64, empty []int) front {
	if mask == 0 {
		return front{"": {label{}}}
	}
	at := state{p.sym.orbitOf(colour(p.n, mask, 0)), countsKey(empty)}
	if f, ok := p.done[at]; ok {
		return f
	}
	f, first := front{}, bits.TrailingZeros64(mask)
	for _, block := range p.blocks(mask, first) {
		c := p.classOf(block)
		for _, labels := range p.pack(mask&^block, empty) {
			for _, l := range labels {
				f.add(l.with(c))
			}
		}
	}
	if without := p.leave(empty, first); without != nil {
		for _, labels := range p.pack(mask&^(1<<first), without) {
			for _, l := range labels {
				f.add(l)
			}
		}
	}
	p.done[at] = f
	return f
}

// leave is what is empty once this node is, too; nil if it must not be.
func (p *packer) leave(empty []int, node int) []int {
	if p.strict {
		return nil
	}
	next := slices.Clone(empty)
	next[p.kinds[node]]++
	for _, size := range p.sizes {
		if p.blockFits(size, next) {
			return nil
		}
	}
	return next
}

// blockFits says that a block of this size fits in nodes of these kinds.
func (p *packer) blockFits(size int, byKind []int) bool {
	room := map[string]int{}
	for kind, n := range byKind {
		for _, plan := range p.fits[kind][size] {
			if room[plan] += n; room[plan] >= size {
				return true
			}
		}
	}
	return false
}

// blocks are the blocks within a set that have this node, of every size, one of each that
// is the same up to symmetry. It grows them node by node.
func (p *packer) blocks(mask uint64, node int) (all []uint64) {
	most := p.sizes[len(p.sizes)-1]
	grown := []uint64{1 << node}
	for size := 1; size <= most && len(grown) > 0; size++ {
		if slices.Contains(p.sizes, size) {
			fitting := slices.DeleteFunc(slices.Clone(grown), func(b uint64) bool { return !p.feasible(b, size) })
			all = append(all, p.limited(fitting)...)
		}
		if size < most {
			grown = p.grow(mask, grown)
		}
	}
	return all
}

// limited are all of these blocks, or the best one after maxSteps.
func (p *packer) limited(blocks []uint64) []uint64 {
	if p.steps += len(blocks); p.steps <= maxSteps || len(blocks) < 2 {
		return blocks
	}
	p.cut++
	return []uint64{slices.MinFunc(blocks, func(a, b uint64) int { return compareClasses(p.classOf(a), p.classOf(b)) })}
}

func (p *packer) grow(mask uint64, blocks []uint64) (next []uint64) {
	seen := map[int]bool{}
	exact := map[uint64]bool{}
	for _, b := range blocks {
		for left := mask &^ b; left != 0; left &= left - 1 {
			grown := b | left&-left
			if p.cut > 0 && len(next) > 0 || exact[grown] {
				continue
			}
			exact[grown] = true
			if p.sym.trivial {
				next = append(next, grown)
			} else if id := p.sym.orbitOf(colour(p.n, mask, grown)); !seen[id] {
				seen[id] = true
				next = append(next, grown)
			}
		}
	}
	return next
}

// feasible says that the nodes of a block have a plan in common.
func (p *packer) feasible(block uint64, size int) bool {
	return len(p.plansOf(block, size)) > 0
}

// plansOf are the plans that all nodes of a block can carry out.
func (p *packer) plansOf(block uint64, size int) []string {
	var common []string
	for i, left := 0, block; left != 0; i, left = i+1, left&(left-1) {
		here := p.fits[p.kinds[bits.TrailingZeros64(left)]][size]
		if i == 0 {
			common = slices.Clone(here)
		} else {
			common = slices.DeleteFunc(common, func(plan string) bool { return !slices.Contains(here, plan) })
		}
	}
	return common
}

func (p *packer) classOf(block uint64) (c class) {
	nodes, kinds := indexes(block), make([]int, len(p.fits))
	for _, i := range nodes {
		kinds[p.kinds[i]]++
	}
	c.size, c.kinds = len(nodes), countsKey(kinds)
	for j, w := range p.joint {
		c.scores[j] = w.Of(nodes)
	}
	return c
}

// unpack is a packing with a given label: its blocks as sets of nodes.
func (p *packer) unpack(mask uint64, empty []int, want label) (blocks []uint64, ok bool) {
	if mask == 0 {
		return nil, len(want) == 0
	}
	first := bits.TrailingZeros64(mask)
	for _, block := range p.blocks(mask, first) {
		i := slices.Index(want, p.classOf(block))
		if i < 0 {
			continue
		}
		left := slices.Delete(slices.Clone(want), i, i+1)
		if !p.pack(mask&^block, empty).has(left) {
			continue
		}
		if others, ok := p.unpack(mask&^block, empty, left); ok {
			return append(others, block), true
		}
	}
	if without := p.leave(empty, first); without != nil && p.pack(mask&^(1<<first), without).has(want) {
		return p.unpack(mask&^(1<<first), without, want)
	}
	return nil, false
}

func colour(n int, mask, block uint64) []byte {
	c := make([]byte, n)
	for i := range c {
		switch {
		case block>>i&1 != 0:
			c[i] = chosen
		case mask>>i&1 != 0:
			c[i] = rest
		}
	}
	return c
}

func indexes(mask uint64) (all []int) {
	for ; mask != 0; mask &= mask - 1 {
		all = append(all, bits.TrailingZeros64(mask))
	}
	return all
}

func countsKey(counts []int) string { return plan(counts).key() }
