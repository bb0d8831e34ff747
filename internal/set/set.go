// SPDX-License-Identifier: Apache-2.0

package set

import (
	"fmt"
	"iter"
	"math/bits"
)

// The largest ids a set can hold. They bound what a malformed list can make us
// allocate: 1 KiB per CPU set. Raising them costs that bound and nothing else.
const (
	MaxCPU  = 8191 // the largest CONFIG_NR_CPUS of any architecture is 8192 (x86, arch/x86/Kconfig)
	MaxNode = 1023 // the largest CONFIG_NODES_SHIFT is 10
)

// Kind is what the ids of a set number. CPU and Node are the only kinds.
type Kind interface {
	~struct{}
	noun() string
	max() int
}

// CPU is the kind of logical CPUs, as Linux numbers them.
type CPU struct{}

func (CPU) noun() string { return "cpu" }
func (CPU) max() int     { return MaxCPU }

// Node is the kind of NUMA nodes, as Linux numbers them.
type Node struct{}

func (Node) noun() string { return "node" }
func (Node) max() int     { return MaxNode }

// CPUSet is a set of logical CPUs; NodeSet one of NUMA nodes. See Set.
type (
	CPUSet  = Set[CPU]
	NodeSet = Set[Node]
)

// Set is an immutable set of ids 0..max. The zero value is empty; == is Equal.
type Set[K Kind] struct {
	// Bit i%8 of byte i/8 is set when id i is a member. A string, so that a
	// set cannot change and is comparable. Invariant: the last byte is not 0.
	bits string
}

// FromCPUs returns the set of these CPUs. It panics on an id outside 0..MaxCPU:
// ids that come from text go through ParseCPUs.
func FromCPUs(ids ...int) CPUSet { return CPUSet{}.With(ids...) }

// FromNodes returns the set of these nodes. It panics on an id outside 0..MaxNode.
func FromNodes(ids ...int) NodeSet { return NodeSet{}.With(ids...) }

// Has reports whether id is a member; an id no set could hold is not.
func (s Set[K]) Has(id int) bool {
	return id >= 0 && id>>3 < len(s.bits) && s.bits[id>>3]&(1<<(id&7)) != 0
}

// Len returns the number of members.
func (s Set[K]) Len() int {
	n := 0
	for i := range len(s.bits) {
		n += bits.OnesCount8(s.bits[i])
	}
	return n
}

// IsEmpty reports whether the set has no member.
func (s Set[K]) IsEmpty() bool { return s.bits == "" }

// Equal reports whether both sets have the same members.
func (s Set[K]) Equal(o Set[K]) bool { return s == o }

// First returns the lowest id; false when the set is empty.
func (s Set[K]) First() (int, bool) {
	for id := range s.All() {
		return id, true
	}
	return 0, false
}

// All yields the ids in ascending order.
func (s Set[K]) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range len(s.bits) {
			for b := s.bits[i]; b != 0; b &= b - 1 {
				if !yield(i<<3 + bits.TrailingZeros8(b)) {
					return
				}
			}
		}
	}
}

// IDs returns the ids in ascending order; the caller owns the slice.
func (s Set[K]) IDs() []int {
	ids := make([]int, 0, s.Len())
	for id := range s.All() {
		ids = append(ids, id)
	}
	return ids
}

// With returns the set and these ids. It panics on an id the kind cannot have.
func (s Set[K]) With(ids ...int) Set[K] {
	if s.hasAll(ids) {
		return s
	}
	var few [32]byte // on the stack: add would put it on the heap
	b := append(builder[K](few[:0]), s.bits...)
	var kind K
	for _, id := range ids {
		if id < 0 || id > kind.max() {
			panic(fmt.Sprintf("set: %s id %d is outside 0-%d", kind.noun(), id, kind.max()))
		}
		for id>>3 >= len(b) {
			b = append(b, 0)
		}
		b[id>>3] |= 1 << (id & 7)
	}
	return b.set()
}

func (s Set[K]) hasAll(ids []int) bool {
	for _, id := range ids {
		if !s.Has(id) {
			return false
		}
	}
	return true
}

// Without returns the set minus these ids.
func (s Set[K]) Without(ids ...int) Set[K] {
	b := builder[K](s.bits)
	for _, id := range ids {
		if s.Has(id) {
			b[id>>3] &^= 1 << (id & 7)
		}
	}
	return b.set()
}

// Sets are compared in every window of every policy, and mostly one is part of the
// other: then the answer is one of them, and nothing is made.

// Union returns the ids that are in either set.
func (s Set[K]) Union(o Set[K]) Set[K] {
	if len(s.bits) < len(o.bits) {
		s, o = o, s
	}
	if o.SubsetOf(s) {
		return s
	}
	b := builder[K](s.bits)
	for i := range len(o.bits) {
		b[i] |= o.bits[i]
	}
	return b.set()
}

// Intersect returns the ids that are in both sets.
func (s Set[K]) Intersect(o Set[K]) Set[K] {
	switch {
	case s.SubsetOf(o):
		return s
	case o.SubsetOf(s):
		return o
	}
	b := builder[K](s.bits[:min(len(s.bits), len(o.bits))])
	for i := range b {
		b[i] &= o.bits[i]
	}
	return b.set()
}

// Minus returns the ids of s that are not in o.
func (s Set[K]) Minus(o Set[K]) Set[K] {
	if !s.Overlaps(o) {
		return s
	}
	b := builder[K](s.bits)
	for i := range min(len(b), len(o.bits)) {
		b[i] &^= o.bits[i]
	}
	return b.set()
}

// SubsetOf reports whether every member of s is in o. The empty set is a subset of all.
func (s Set[K]) SubsetOf(o Set[K]) bool {
	if len(s.bits) > len(o.bits) { // its last byte is not 0
		return false
	}
	for i := range len(s.bits) {
		if s.bits[i]&^o.bits[i] != 0 {
			return false
		}
	}
	return true
}

// Overlaps reports whether the sets share a member.
func (s Set[K]) Overlaps(o Set[K]) bool {
	for i := range min(len(s.bits), len(o.bits)) {
		if s.bits[i]&o.bits[i] != 0 {
			return true
		}
	}
	return false
}

// builder is a set under construction; it never escapes this package.
type builder[K Kind] []byte

func (builder[K]) noun() string { var k K; return k.noun() }
func (builder[K]) max() int     { var k K; return k.max() }

// add needs 0 <= id <= max.
func (b *builder[K]) add(id int) {
	for id>>3 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[id>>3] |= 1 << (id & 7)
}

// set freezes the builder, restoring the invariant of Set.bits.
func (b builder[K]) set() Set[K] {
	n := len(b)
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return Set[K]{bits: string(b[:n])}
}
