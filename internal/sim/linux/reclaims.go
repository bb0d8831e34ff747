// SPDX-License-Identifier: Apache-2.0

package linux

const (
	// kswapdRate is how many bytes of clean page cache per second one kswapd thread gives
	// back. Estimated: some 2 µs per page. With a lower rate, allocations fall over to
	// other nodes while it works.
	kswapdRate = 2e9
	// mappedWeight is the relative probability that a mapped page is dropped, compared with
	// an unmapped one: mapped pages were seen accessed and get a second round
	// (folio_check_references). Estimated.
	mappedWeight = 0.1
)

// Reclaim is dt seconds of kswapd.
//
// mm/vmscan.c: kswapd of a node
//
//  1. wakes when free memory is below low (wakeup_kswapd),
//  2. gives back page cache of all groups in proportion, and a little of mapped files
//     (shrink_node), as fast as it can,
//  3. until high is free (balance_pgdat, pgdat_balanced).
//
// Anonymous memory stays: there is no swap.
func (h *Host) Reclaim(dt float64) {
	s := h.prepare()
	if !h.Settings.Reclaim {
		return
	}
	for k := range h.Nodes {
		s.kswapd[k] = s.kswapd[k] || s.free[k] < s.low[k] // 1
		if !s.kswapd[k] {
			continue
		}
		fast := kswapdRate / PageBytes * dt
		h.drop(k, min(s.high[k]-s.free[k], fast), mappedWeight) // 2
		s.kswapd[k] = s.free[k] < s.high[k]                     // 3
	}
	h.bringAll()
}

// leastKept is where lists are brought up to date, as almost nothing of them is kept.
const leastKept = 1e-6

// drop frees pages of page cache on a node, mapped ones by a weight. bring later removes
// them from each group's lists: where memory is full, every Touch drops.
func (h *Host) drop(node int, pages, weight float64) {
	s := &h.scratch
	cache, mapped := s.cache[node], s.mapped[node]
	both := cache + weight*mapped
	if pages <= 0 || both <= 0 {
		return
	}
	first := min(pages*(cache/both), cache)
	second := 0.0
	if weight > 0 {
		second = min(pages-first, mapped)
	}
	for kind, part := range [2]float64{first / max(cache, 1e-300), second / max(mapped, 1e-300)} {
		s.kept[kind][node] *= max(1-part, 0)
	}
	s.cache[node], s.mapped[node] = cache-first, mapped-second
	s.free[node] += first + second
	s.behind = true
	if min(s.kept[0][node], s.kept[1][node]) < leastKept {
		h.bringAll()
	}
}
