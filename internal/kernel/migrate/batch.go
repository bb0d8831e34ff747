// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"math/bits"
	"time"
)

// batch finds how many pages a call should have.
//
// A smaller batch makes shorter calls only where pages are what takes time. Each
// call also has a price of its own: it drains every CPU's page lists first
// (lru_cache_disable in do_pages_move, mm/migrate.c), tens of milliseconds where
// all CPUs are busy. In the lab, batches of 8 took 7 times the CPU time of 512
// for the same pages, and their calls were no shorter. So:
//
//  1. A batch that turns out to take nearly as long as one of twice its size
//     is given up for that one.
//  2. Else a slow call tries half its batch, unless that is known to be (1).
//  3. A fast call tries twice its batch.
//  4. What is known grows old: every so often it is forgotten.
type batch struct {
	pages int
	cost  [16]time.Duration // of a call by the logarithm of its pages; 0 = unknown
	calls int
}

func newBatch() batch { return batch{pages: maxBatch} }

const (
	// pays is how much shorter a call of half the pages must be to be worth it.
	pays = 0.7
	// memory is how many calls a cost is remembered for.
	memory = 256
)

// observe learns from a call. One that was not full tells nothing about its batch.
func (b *batch) observe(pages int, took time.Duration) {
	if pages != b.pages {
		return
	}
	if b.calls++; b.calls%memory == 0 {
		b.cost = [16]time.Duration{} // (4)
	}
	at := bits.Len(uint(pages)) - 1
	if b.cost[at] == 0 {
		b.cost[at] = took
	}
	b.cost[at] += (took - b.cost[at]) / 4
	switch now := b.cost[at]; {
	case now > slowCall && inVain(now, b.cost[at+1]):
		b.pages = min(maxBatch, pages*2) // (1)
	case now > slowCall && !inVain(b.cost[at-1], now):
		b.pages = max(minBatch, pages/2) // (2)
	case now < fastCall:
		b.pages = min(maxBatch, pages*2) // (3)
	}
}

// inVain says that half the pages take nearly as long as the whole.
func inVain(half, whole time.Duration) bool {
	return half > 0 && whole > 0 && float64(half) > pays*float64(whole)
}
