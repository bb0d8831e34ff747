// SPDX-License-Identifier: Apache-2.0

package memsys

// Accesses overlap by one law, whether they hit or miss: with n of them outstanding at
// once, each costs a core 1/n of its latency (Little's law).
//
//  1. n is the program's Parallelism, as far as the core has buffers for so many lines
//     (Misses). Siblings share these: of 12, each of two busy threads has 6.
//  2. What hits L2 holds a buffer beyond L1. So does what goes beyond L2, and it takes a
//     place in the queue to the LLC as well. Of a stream a prefetcher asks for the lines
//     beyond L2: it needs the queue only, and may have more of them outstanding than L1 has
//     buffers.
//  3. So a hit of the LLC never costs more than a miss, and losing cache never makes a
//     program faster. An LLC hit at its full latency beside misses that overlap would.

// overlaps is numbers 1 and 2: how many of a region's accesses are outstanding at once, of
// those that hit L2 and of those that go beyond; bounded is whether a core's buffers limit
// the latter.
func (s *System) overlaps(parallelism float64, stream bool, threads float64) (near, far float64, bounded bool) {
	most := func(of float64) float64 {
		if of <= 0 {
			return parallelism
		}
		return max(1, min(parallelism, of/threads))
	}
	near, far = most(s.Misses.L1), most(s.Misses.L2)
	if !stream && s.Misses.L1 > 0 && s.Misses.L1 < s.Misses.L2 {
		far = min(near, far)
	}
	return near, far, far < parallelism && far > 1
}

// Outstanding is how many of a region's accesses beyond L2 are outstanding at once, on a
// core of its own.
func (s *System) Outstanding(r *Region) float64 {
	_, far, _ := s.overlaps(max(1, r.Parallelism), r.Stream, 1)
	return far
}
