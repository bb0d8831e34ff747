// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"slices"

	"homenode/internal/profile"
)

// figures are a list of the profile in the order of keys.
type figures[T any, K comparable] struct {
	all  *[]T
	key  func(T) K
	rank map[K]int
	had  map[K]bool
}

func figuresOf[T any, K comparable](all *[]T, key func(T) K, order []K) figures[T, K] {
	f := figures[T, K]{all, key, make(map[K]int, len(order)), make(map[K]bool, len(*all))}
	for i, k := range order {
		f.rank[k] = i
	}
	for _, v := range *all {
		f.had[key(v)] = true
	}
	return f
}

// has says whether there was one with that key when the list was read.
func (f figures[T, K]) has(k K) bool { return f.had[k] }

// put adds one; a key that is not in the order comes first. The list is copied, so that
// a saved profile keeps its own.
func (f figures[T, K]) put(v T) {
	of := func(v T) int {
		if at, ok := f.rank[f.key(v)]; ok {
			return at
		}
		return -1
	}
	all := *f.all
	at, _ := slices.BinarySearchFunc(all, of(v)+1, func(have T, next int) int { return cmp.Compare(of(have), next) })
	longer := make([]T, 0, len(all)+1)
	*f.all = append(append(append(longer, all[:at]...), v), all[at:]...)
}

// offers become a plan: each is there already, cannot be measured, or is a piece.
type offers struct {
	part   profile.Part
	plan   plan
	pieces []piece
}

func (o *offers) offer(what string, have bool, make func() (piece, error)) {
	if have {
		o.plan.have++
		return
	}
	p, err := make()
	if err != nil {
		o.skip(what, err)
		return
	}
	p.what = what
	o.pieces = append(o.pieces, p)
}

func (o *offers) skip(what string, err error) {
	o.plan.skipped = append(o.plan.skipped, profile.Skipped{Part: o.part, What: what, Why: err.Error()})
}

func (o *offers) done() plan {
	o.plan.blocks = inBlocks(o.pieces)
	return o.plan
}
