// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// paces are the durations of a stretch's batches. The memory is allocated before:
// nothing is allocated while it is measured. They are few bytes each, because writing
// them down misses the caches that a chase has filled: one miss for eight batches.
type paces struct {
	n     int
	batch [2048]pace // later batches are not kept
	look  time.Duration
}

type pace struct {
	ops  uint32
	took uint32 // ns, at most 4.2 s
}

//go:nosplit
func (p *paces) addBatch(ops int, took time.Duration) {
	if p.n < len(p.batch) {
		p.batch[p.n] = pace{uint32(ops), uint32(min(max(took, 0), math.MaxUint32))}
		p.n++
	}
}

// perOp leaves out the time of the clock read.
func (p *paces) perOp(b pace) float64 {
	return max(0, float64(b.took)-float64(p.look)) / float64(b.ops)
}

// quiet is the time of the ops at the median pace: half of them were faster, and half
// slower. An interruption makes a few batches slower, by any amount. Without batches it
// is the measured time.
func (p *paces) quiet(ops uint64, elapsed time.Duration) time.Duration {
	all := slices.Clone(p.batch[:p.n])
	slices.SortFunc(all, func(a, b pace) int { return cmp.Compare(p.perOp(a), p.perOp(b)) })
	var total, seen uint64
	for _, b := range all {
		total += uint64(b.ops)
	}
	for _, b := range all {
		if seen += uint64(b.ops); 2*seen >= total {
			return time.Duration(p.perOp(b) * float64(ops))
		}
	}
	return elapsed
}
