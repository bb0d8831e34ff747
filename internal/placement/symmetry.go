// SPDX-License-Identifier: Apache-2.0

package placement

import "slices"

// symmetry finds which colourings of the nodes are the same up to an automorphism of the
// machine: a renaming of nodes that keeps the kind of each and the weights of each pair.
//
//  1. A colouring is refined: a node's colour takes in the colours of the others by the
//     weight of the pair, until no more colours part.
//  2. The refined colours, as a multiset, are the same for equal colourings. So only
//     those can be equal that agree in it.
//  3. Whether two of these are is found by search. One that takes too long counts as
//     "not equal": then work is done twice, and nothing is lost.
type symmetry struct {
	n     int
	kind  []int   // by node: equal numbers may be renamed into each other
	pair  [][]int // by pair of nodes
	known map[string]int
	same  map[uint64][]orbit
	count int
	// trivial: every node differs from every other, so only equal colourings are equal.
	trivial bool
}

// orbit is the first colouring of its kind that was seen.
type orbit struct {
	id      int
	colours []byte
	refined []uint64
}

// maxSearch bounds one search for an automorphism, in assignments of a node.
const maxSearch = 20_000

func newSymmetry(kind []int, pair [][]int) *symmetry {
	s := &symmetry{n: len(kind), kind: kind, pair: pair, known: map[string]int{}, same: map[uint64][]orbit{}}
	colours := s.refine(make([]byte, s.n))
	slices.Sort(colours)
	s.trivial = len(slices.Compact(colours)) == s.n
	return s
}

// orbitOf is the same number for colourings that are the same up to symmetry.
func (s *symmetry) orbitOf(colours []byte) int {
	if id, ok := s.known[string(colours)]; ok {
		return id
	}
	id := s.classify(colours)
	s.known[string(colours)] = id
	return id
}

func (s *symmetry) classify(colours []byte) int {
	if s.trivial {
		s.count++
		return s.count
	}
	refined := s.refine(colours)
	sum := uint64(0)
	for _, c := range refined {
		sum += mix(c)
	}
	for _, o := range s.same[sum] {
		if s.equal(refined, o.refined) {
			return o.id
		}
	}
	s.count++
	s.same[sum] = append(s.same[sum], orbit{s.count, slices.Clone(colours), refined})
	return s.count
}

// refine is 1.
func (s *symmetry) refine(colours []byte) []uint64 {
	now, next := make([]uint64, s.n), make([]uint64, s.n)
	for i, c := range colours {
		now[i] = mix(uint64(c)<<32 | uint64(s.kind[i]))
	}
	for parts := distinct(now); ; {
		for i := range now {
			sum := uint64(0)
			for j := range now {
				if i != j {
					sum += mix(now[j] ^ mix(uint64(s.pair[i][j])))
				}
			}
			next[i] = mix(now[i]*3 + sum)
		}
		now, next = next, now
		if p := distinct(now); p > parts {
			parts = p
			continue
		}
		return now
	}
}

func distinct(values []uint64) int {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}

// mix spreads a number over 64 bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// equal is 3: a renaming that takes one refined colouring to the other.
func (s *symmetry) equal(a, b []uint64) bool {
	to, used, left := make([]int, s.n), make([]bool, s.n), maxSearch
	var assign func(i int) bool
	assign = func(i int) bool {
		if i == s.n {
			return true
		}
		for j := range s.n {
			if left--; left < 0 {
				return false
			}
			if used[j] || a[i] != b[j] || !s.fits(i, j, to) {
				continue
			}
			to[i], used[j] = j, true
			if assign(i + 1) {
				return true
			}
			used[j] = false
		}
		return false
	}
	return assign(0)
}

// fits says that the pairs of node i with those before it keep their weights if i
// becomes j.
func (s *symmetry) fits(i, j int, to []int) bool {
	for k := range i {
		if s.pair[i][k] != s.pair[j][to[k]] {
			return false
		}
	}
	return true
}
