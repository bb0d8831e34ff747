// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"math/bits"
	"unsafe"
)

// splitmix is Vigna's splitmix64 (public domain): one addition, two multiplications,
// good enough for a shuffle.
//
//go:nosplit
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	z := *state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// buildCycle links all lines into one random cycle, with Sattolo's algorithm from
// the inside out, in one pass:
//
//  1. Line 0 leads to itself: a cycle of one.
//  2. Line i is put behind a random line j < i: the cycle stays one, and is longer
//     by one line. Every cycle of all lines is as likely as any other.
//
// A cycle by blocks would be cheaper to build for large buffers. But a prefetcher
// fetches neighbours along, which would then be used soon, and the latency would be too
// low. This takes two accesses a line, one of them random: 1 GiB some 2 s.
func buildCycle(base unsafe.Pointer, lines int, seed uint64, stop func() error) error {
	*(*uintptr)(base) = uintptr(base) // 1
	state := seed
	for i := 1; i < lines; i++ {
		if i%linesToLook == 0 {
			if err := stop(); err != nil {
				return err
			}
		}
		high, _ := bits.Mul64(splitmix(&state), uint64(i))
		p, q := unsafe.Add(base, i*line), unsafe.Add(base, int(high)*line)
		*(*uintptr)(p) = *(*uintptr)(q) // 2
		*(*uintptr)(q) = uintptr(p)
	}
	return nil
}

// linesToLook is the number of lines that are linked, or touched, between two checks
// for cancellation: 10 ms at 150 ns each.
const linesToLook = 1 << 16
