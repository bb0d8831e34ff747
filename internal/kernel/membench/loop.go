// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"sync/atomic"
	"unsafe"
)

// The hot loops. Their own cost beyond their loads and stores is part of the
// measurement: in the lab every instruction is one model cycle. So they are unrolled,
// and nothing of Go's runtime runs in between:
//
//   - All is nosplit. In a function's prologue the scheduler takes over from a
//     goroutine that ran for 10 ms (preemptone in runtime/proc.go); giving a locked
//     thread away and back is two switches through another thread, some 4 % in the lab.
//     The signal with the same effect is blocked (worker.go).
//   - Each line has two words in use: word 0 is the chase's pointer, and all other
//     work loads and stores word 1. So a buffer's cycle stays intact under any other
//     work.

const (
	line   = 64
	second = 8 // offset of the word that is not the chase's
)

// chase makes n dependent loads. Of the loop's 35 instructions 32 are loads; the rest
// is done without a loop, for chases with an add every few steps.
//
//go:nosplit
func chase(p unsafe.Pointer, n int) unsafe.Pointer {
	for ; n >= 32; n -= 32 {
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
	}
	if n&16 != 0 {
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
	}
	if n&8 != 0 {
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
	}
	if n&4 != 0 {
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
	}
	if n&2 != 0 {
		p = *(*unsafe.Pointer)(p)
		p = *(*unsafe.Pointer)(p)
	}
	if n&1 != 0 {
		p = *(*unsafe.Pointer)(p)
	}
	return p
}

//go:nosplit
func word(p unsafe.Pointer, off uintptr) *uint64 { return (*uint64)(unsafe.Add(p, off)) }

// readLines loads from n lines in order. The sum is returned so that the compiler keeps
// the loads.
//
//go:nosplit
func readLines(p unsafe.Pointer, n int) (sum uint64) {
	for ; n >= 16; n -= 16 {
		sum ^= *word(p, 0*line+second)
		sum ^= *word(p, 1*line+second)
		sum ^= *word(p, 2*line+second)
		sum ^= *word(p, 3*line+second)
		sum ^= *word(p, 4*line+second)
		sum ^= *word(p, 5*line+second)
		sum ^= *word(p, 6*line+second)
		sum ^= *word(p, 7*line+second)
		sum ^= *word(p, 8*line+second)
		sum ^= *word(p, 9*line+second)
		sum ^= *word(p, 10*line+second)
		sum ^= *word(p, 11*line+second)
		sum ^= *word(p, 12*line+second)
		sum ^= *word(p, 13*line+second)
		sum ^= *word(p, 14*line+second)
		sum ^= *word(p, 15*line+second)
		p = unsafe.Add(p, 16*line)
	}
	for ; n > 0; n-- {
		sum ^= *word(p, second)
		p = unsafe.Add(p, line)
	}
	return sum
}

//go:nosplit
func writeLines(p unsafe.Pointer, n int, v uint64) {
	for ; n >= 16; n -= 16 {
		*word(p, 0*line+second) = v
		*word(p, 1*line+second) = v
		*word(p, 2*line+second) = v
		*word(p, 3*line+second) = v
		*word(p, 4*line+second) = v
		*word(p, 5*line+second) = v
		*word(p, 6*line+second) = v
		*word(p, 7*line+second) = v
		*word(p, 8*line+second) = v
		*word(p, 9*line+second) = v
		*word(p, 10*line+second) = v
		*word(p, 11*line+second) = v
		*word(p, 12*line+second) = v
		*word(p, 13*line+second) = v
		*word(p, 14*line+second) = v
		*word(p, 15*line+second) = v
		p = unsafe.Add(p, 16*line)
	}
	for ; n > 0; n-- {
		*word(p, second) = v
		p = unsafe.Add(p, line)
	}
}

// copyLines copies one word of each of n lines.
//
//go:nosplit
func copyLines(to, from unsafe.Pointer, n int) {
	for ; n >= 8; n -= 8 {
		*word(to, 0*line+second) = *word(from, 0*line+second)
		*word(to, 1*line+second) = *word(from, 1*line+second)
		*word(to, 2*line+second) = *word(from, 2*line+second)
		*word(to, 3*line+second) = *word(from, 3*line+second)
		*word(to, 4*line+second) = *word(from, 4*line+second)
		*word(to, 5*line+second) = *word(from, 5*line+second)
		*word(to, 6*line+second) = *word(from, 6*line+second)
		*word(to, 7*line+second) = *word(from, 7*line+second)
		to, from = unsafe.Add(to, 8*line), unsafe.Add(from, 8*line)
	}
	for ; n > 0; n-- {
		*word(to, second) = *word(from, second)
		to, from = unsafe.Add(to, line), unsafe.Add(from, line)
	}
}

// source is a worker's lines, and its position among them.
type source struct {
	base  unsafe.Pointer // of its part
	lines int            // of its part; for Copy half as many ops fit
	next  int            // the next line, in order
	at    unsafe.Pointer // Chase: the line to load next
	sum   uint64
	phase int // Mixed: which of Reads + Writes is next

	work          Work
	reads, writes int
	half          uintptr // Copy: bytes from a line to its copy
	pause         int     // turns of spin

	shared      unsafe.Pointer
	sharedLines uint64
	every       int // ops per add; 0 = none
	toAdd       int // ops to the next
	random      uint64
}

// do performs n ops.
//
//go:nosplit
func (s *source) do(n int) {
	switch {
	case s.every == 0:
		s.ops(n)
		return
	case s.every == 1 && s.work == Chase && s.pause == 0: // Rao's
		p := s.at
		for ; n > 0; n-- {
			p = *(*unsafe.Pointer)(p)
			s.addToRandomLine()
		}
		s.at = p
		return
	}
	for n > 0 {
		k := min(n, s.toAdd)
		s.ops(k)
		n -= k
		if s.toAdd -= k; s.toAdd == 0 {
			s.addToRandomLine()
			s.toAdd = s.every
		}
	}
}

// addToRandomLine is Rao's: one atomic add to a random line. The high half of 32 random bits times
// the lines is uniform without a division.
//
//go:nosplit
func (s *source) addToRandomLine() {
	at := (splitmix(&s.random) >> 32) * s.sharedLines >> 32
	atomic.AddUint64(word(s.shared, uintptr(at)*line+second), 1)
}

// ops performs n ops without adds: in order, up to the end of the part and then again
// from its start.
//
//go:nosplit
func (s *source) ops(n int) {
	if s.work == Chase || s.work == Transfer {
		s.chase(n)
		return
	}
	for n > 0 {
		k := min(n, s.lines-s.next)
		if s.pause > 0 {
			k = 1
		}
		s.some(unsafe.Add(s.base, s.next*line), k)
		if s.next += k; s.next == s.lines {
			s.next = 0
		}
		n -= k
		if s.pause > 0 {
			spin(s.pause)
		}
	}
}

//go:nosplit
func (s *source) some(p unsafe.Pointer, k int) {
	switch s.work {
	case Read:
		s.sum ^= readLines(p, k)
	case Write:
		writeLines(p, k, s.sum)
	case Copy:
		copyLines(unsafe.Add(p, s.half), p, k)
	case Mixed:
		s.mixed(p, k)
	}
}

//go:nosplit
func (s *source) chase(n int) {
	if s.pause == 0 {
		s.at = chase(s.at, n)
		return
	}
	p := s.at
	for ; n > 0; n-- {
		p = *(*unsafe.Pointer)(p)
		spin(s.pause)
	}
	s.at = p
}

// mixed continues the pattern from its last position. Whole patterns of the usual mixes
// are unrolled.
//
//go:nosplit
func (s *source) mixed(p unsafe.Pointer, k int) {
	reads, writes, sum, phase := s.reads, s.writes, s.sum, s.phase
	for k > 0 {
		switch {
		case phase == 0 && writes == 1 && reads == 1 && k >= 8:
			for ; k >= 8; k -= 8 {
				sum ^= *word(p, 0*line+second)
				*word(p, 1*line+second) = sum
				sum ^= *word(p, 2*line+second)
				*word(p, 3*line+second) = sum
				sum ^= *word(p, 4*line+second)
				*word(p, 5*line+second) = sum
				sum ^= *word(p, 6*line+second)
				*word(p, 7*line+second) = sum
				p = unsafe.Add(p, 8*line)
			}
			continue
		case phase == 0 && writes == 1 && reads == 2 && k >= 12:
			for ; k >= 12; k -= 12 {
				sum ^= *word(p, 0*line+second)
				sum ^= *word(p, 1*line+second)
				*word(p, 2*line+second) = sum
				sum ^= *word(p, 3*line+second)
				sum ^= *word(p, 4*line+second)
				*word(p, 5*line+second) = sum
				sum ^= *word(p, 6*line+second)
				sum ^= *word(p, 7*line+second)
				*word(p, 8*line+second) = sum
				sum ^= *word(p, 9*line+second)
				sum ^= *word(p, 10*line+second)
				*word(p, 11*line+second) = sum
				p = unsafe.Add(p, 12*line)
			}
			continue
		case phase == 0 && writes == 1 && reads == 2 && k >= 3: // batches are not multiples of it
			for ; k >= 3; k -= 3 {
				sum ^= *word(p, 0*line+second)
				sum ^= *word(p, 1*line+second)
				*word(p, 2*line+second) = sum
				p = unsafe.Add(p, 3*line)
			}
			continue
		case phase == 0 && writes == 1 && reads == 3 && k >= 8:
			for ; k >= 8; k -= 8 {
				sum ^= *word(p, 0*line+second)
				sum ^= *word(p, 1*line+second)
				sum ^= *word(p, 2*line+second)
				*word(p, 3*line+second) = sum
				sum ^= *word(p, 4*line+second)
				sum ^= *word(p, 5*line+second)
				sum ^= *word(p, 6*line+second)
				*word(p, 7*line+second) = sum
				p = unsafe.Add(p, 8*line)
			}
			continue
		}
		if phase < reads {
			sum ^= *word(p, second)
		} else {
			*word(p, second) = sum
		}
		if phase++; phase == reads+writes {
			phase = 0
		}
		p = unsafe.Add(p, line)
		k--
	}
	s.sum, s.phase = sum, phase
}
