// SPDX-License-Identifier: Apache-2.0

package brm

// golden is 2^64 divided by the golden ratio: SplitMix64 (Steele, Lea, Flood: Fast
// splittable pseudorandom number generators, OOPSLA 2014).
const golden = 0x9e3779b97f4a7c15

// draw is a stream of random numbers for one thread in one window. Its seed comes from the
// state, so the same state and window give the same answer. A thread's numbers depend
// neither on the other threads nor on how nodes are numbered.
type draw uint64

// drawOf uses the thread's key: its workload's hash, and its ID.
func (r *round) drawOf(workload uint64, id int) draw {
	return draw(mix(mix(mix(r.next.Seed+r.next.Step*golden)^workload) + uint64(id)*golden))
}

func (d *draw) next() uint64 {
	*d += golden
	return mix(uint64(*d))
}

// below returns a number from 0 … n-1; n > 0. Its bias is below n / 2^64.
func (d *draw) below(n int) int { return int(d.next() % uint64(n)) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// hash is FNV-1a, of 64 bits.
func hash(text string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return h
}
