// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"time"

	"homenode/internal/unit"
)

// pacer holds a rate: a batch is due when everything moved before it, and the batch
// itself, would have been moved at that rate.
//
//  1. A batch is begun so that it ends when it is due.
//  2. Time lost, to searching for pages or to a slow call, is caught up, but never at
//     more than twice the rate.
//  3. Of a longer loss only a second is caught up: a minute at twice the rate is not what
//     the caller asked for.
type pacer struct {
	rate unit.Bytes // a second; 0: unlimited
	from time.Duration
	done unit.Bytes    // begun since then, less what did not move
	last time.Duration // when the last batch was begun
	size unit.Bytes    // of it
}

const (
	burst        = 2 // times the rate, when catching up
	batchShare   = 4 // a batch is at most this part of a second's worth
	mostCredit   = time.Second
	sleepAtMost  = 50 * time.Millisecond
	sleepAtLeast = 100 * time.Microsecond
)

// most is how large a batch may be.
func (p *pacer) most() unit.Bytes {
	if p.rate == 0 {
		return NoBudget
	}
	return max(1, p.rate/batchShare)
}

// wait is how long a batch that takes so long must still wait.
func (p *pacer) wait(now time.Duration, size unit.Bytes, takes time.Duration) time.Duration {
	if p.rate == 0 {
		return 0
	}
	due := p.from + p.lasts(p.done+size) - takes // (1)
	if p.size > 0 {
		due = max(due, p.last+p.lasts(p.size)/burst) // (2)
	}
	return max(0, due-now)
}

func (p *pacer) lasts(b unit.Bytes) time.Duration {
	return time.Duration(float64(b) / float64(p.rate) * float64(time.Second))
}

func (p *pacer) begin(now time.Duration, size unit.Bytes) {
	if p.rate > 0 {
		lost := now - p.from - p.lasts(p.done+size)
		p.from += max(0, lost-mostCredit) // (3)
	}
	p.done, p.last, p.size = p.done+size, now, size
}

// undo takes back what did not move.
func (p *pacer) undo(size unit.Bytes) { p.done -= size }
