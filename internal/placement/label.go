// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"
)

// class is a kind of block: nodes of the same score. Blocks of one class are one to the
// packings.
type class struct {
	size   int
	scores [maxJoint]int64
	kinds  string // how many nodes of each kind
}

// maxJoint is the number of joint concerns that there can be.
const maxJoint = 2

func compareClasses(a, b class) int {
	if a.size != b.size {
		return cmp.Compare(b.size, a.size)
	}
	if c := slices.Compare(b.scores[:], a.scores[:]); c != 0 {
		return c
	}
	return cmp.Compare(a.kinds, b.kinds)
}

// label is a packing, of which only the classes of its blocks matter: in the order of
// compareClasses.
type label []class

func (l label) with(c class) label {
	i, _ := slices.BinarySearchFunc(l, c, compareClasses)
	return slices.Insert(slices.Clone(l), i, c)
}

func (l label) sizes() string {
	b := make([]byte, len(l))
	for i, c := range l {
		b[i] = byte(c.size)
	}
	return string(b)
}

// dominates says that a packing with blocks of the same sizes is nowhere better: for each
// joint concern, the scores of its blocks of each size, sorted, are at most as high. Of
// equal packings the first is kept (read to the letter, the paper has them delete each
// other); those with equal scores on nodes of other kinds both stay.
func (l label) dominates(o label) bool {
	better := false
	for concern := range maxJoint {
		mine, theirs := l.sorted(concern), o.sorted(concern)
		if !atLeast(mine, theirs) {
			return false
		}
		better = better || !slices.Equal(mine, theirs)
	}
	return better || slices.Equal(l, o)
}

func atLeast(a, b []int64) bool {
	for i := range a {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}

// sorted are the scores of the blocks by one concern, the largest blocks and then the
// highest scores first.
func (l label) sorted(concern int) []int64 {
	all := make([]int64, len(l))
	for i, c := range l {
		all[i] = c.scores[concern]
	}
	if concern == 0 { // compareClasses has this order
		return all
	}
	for from := 0; from < len(l); {
		to := from
		for to < len(l) && l[to].size == l[from].size {
			to++
		}
		slices.SortFunc(all[from:to], func(a, b int64) int { return cmp.Compare(b, a) })
		from = to
	}
	return all
}

// front are packings of which none dominates another, by the sizes of their blocks.
type front map[string][]label

func (f front) add(l label) {
	sizes := l.sizes()
	for _, other := range f[sizes] {
		if other.dominates(l) {
			return
		}
	}
	f[sizes] = append(slices.DeleteFunc(f[sizes], l.dominates), l)
}

func (f front) has(l label) bool {
	return slices.ContainsFunc(f[l.sizes()], func(o label) bool { return slices.Equal(o, l) })
}
