// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"slices"
	"time"
)

// paces are how long the batches of a stretch took. It has room before it begins:
// nothing is allocated while it is measured.
type paces struct {
	n     int
	batch [2048]pace // what comes later is not kept
}

type pace struct {
	ops  int
	took time.Duration
}

//go:nosplit
func (p *paces) add(ops int, took time.Duration) {
	if p.n < len(p.batch) {
		p.batch[p.n] = pace{ops, took}
		p.n++
	}
}

func (p pace) perOp() float64 { return float64(p.took) / float64(p.ops) }

// quiet is what the ops take at the median pace: that at which half of them were
// made faster, and half slower. An interruption makes a few batches slower, by
// however much. Without batches it is what was measured.
func (p *paces) quiet(ops uint64, elapsed time.Duration) time.Duration {
	all := slices.Clone(p.batch[:p.n])
	slices.SortFunc(all, func(a, b pace) int { return cmp.Compare(a.perOp(), b.perOp()) })
	total := 0
	for _, b := range all {
		total += b.ops
	}
	seen := 0
	for _, b := range all {
		if seen += b.ops; 2*seen >= total {
			return time.Duration(b.perOp() * float64(ops))
		}
	}
	return elapsed
}
