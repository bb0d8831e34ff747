// SPDX-License-Identifier: Apache-2.0

package set

// The kernel's masks in memory, as sched_setaffinity(2), mbind(2) and others take
// them: bit i%64 of word i/64 is id i.

const wordBits = 64

// Words are the set's mask, one word at least.
func (s Set[K]) Words() []uint64 {
	words := make([]uint64, max(1, (len(s.bits)+7)/8))
	for id := range s.All() {
		words[id/wordBits] |= 1 << (id % wordBits)
	}
	return words
}

// IDsOf are the ids in a mask, ascending.
func IDsOf(words []uint64) (ids []int) {
	for id := range len(words) * wordBits {
		if words[id/wordBits]>>(id%wordBits)&1 == 1 {
			ids = append(ids, id)
		}
	}
	return ids
}
