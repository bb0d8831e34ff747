// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"math"
	"time"
)

// sizer finds how many pages a call may have without taking longer than a bound.
//
// A call costs a fixed price and a price per page. The fixed one is large where all
// CPUs are busy: do_pages_move (mm/migrate.c) first drains every CPU's page lists
// (lru_cache_disable). In the lab, batches of 8 took 7 times the CPU time of 512 for
// the same pages, and their calls were no shorter. So:
//
//  1. Start with few pages. Never take more than twice the pages that were seen to fit:
//     their cost is at most twice as high.
//  2. Fit the fixed price and the price per page to the calls; older calls count less.
//     Every eighth call has half the pages: without that the two prices cannot be
//     distinguished. The fixed price is at most what the quickest of the last calls took,
//     whatever the fit says: a few slow calls at the start, or one long one, would make it
//     several times too high.
//  3. Aim at half the bound, or at more where the fixed price would use most of that.
//  4. Each call over the bound makes the aim a fifth smaller. It grows back by a
//     thousandth with each call, which leaves about one in 200 over.
//  5. Never take fewer pages than what makes a tenth of the call's time useful. Where the
//     fixed price alone leaves no room for that, the bound cannot be kept: the result
//     says so, and the batch is one of which half would take more than 0.7 of the time.
//     Every eighth call has one page then: larger ones would never show that the fixed
//     price has fallen.
type sizer struct {
	bound time.Duration // 0: none
	most  int           // pages; also without a bound
	reach int           // most pages in a recent call within the bound
	aim   float64       // what calls over the bound left of the aim, (0, 1]
	calls int
	// Moments of pages and seconds, forgotten exponentially.
	weight, n, t, nn, nt float64
	lastOver             bool
	quick, quickBefore   float64 // seconds: least of these recentCalls, and of those before
}

const (
	firstShare = 512  // of the most pages, in the first call: 8 small ones, one huge
	mostPages  = 4096 // of any call: 16 MiB of small pages
	// sharedPages is the limit for a call without a bound where several workers share the
	// pages, also those of one process: 2 MiB. In the lab three workers moved 8 MiB of a
	// sleeping process in 1.1 model-s with it, and in 1.8 with mostPages.
	sharedPages = 512
	// fewestShared is the least share of what is left (evenly). Fewer pages end the run more
	// evenly, but the fixed price of a call counts more.
	fewestShared = 128
	forget       = 0.97 // the 33 last calls or so count
	probeEvery   = 8    // calls, of which one has half the pages
	recentCalls  = 16   // two to four of them have half the pages
	goal         = 0.5  // of the bound
	goalMost     = 0.9  // of the bound, where the fixed price is high
	keepRate     = 0.8  // of the throughput that the whole bound would give
	useful       = 0.1  // share of a call's time that pages must have
	hopelessLoad = 1.5  // pages' time in fixed prices, where the bound cannot be kept
	afterOver    = 0.8
	recovery     = 1.001
	leastAim     = 0.1
	outlierAt    = 3.0 // times of what was expected
)

func newSizer(bound time.Duration, most int) *sizer {
	return &sizer{bound: bound, most: most, aim: 1, quick: math.Inf(1), quickBefore: math.Inf(1)}
}

// pages is what the next call should have at most.
func (s *sizer) pages() int {
	switch {
	case s.bound == 0:
		return s.most
	case s.calls == 0:
		return max(1, s.most/firstShare)
	}
	n := min(s.fits(), 2*max(1, s.reach), s.most)
	switch {
	case s.calls%probeEvery > 0:
	case s.hopeless():
		n = 1 // (5)
	default:
		n /= 2 // (2)
	}
	return max(1, n)
}

// fits is the number of pages by the fitted prices.
func (s *sizer) fits() int {
	fixed, page := s.prices()
	bound := s.bound.Seconds()
	if page <= 0 {
		return s.most
	}
	if s.hopeless() {
		return atMost(hopelessLoad*fixed/page, s.most)
	}
	f := fixed / bound
	aim := min(goalMost, max(goal, f/(1-keepRate+keepRate*f))) * s.aim * bound // (3)
	least := useful / (1 - useful) * fixed / page                              // (5)
	return atMost(max((aim-fixed)/page, least), s.most)
}

func atMost(pages float64, most int) int { return max(1, int(min(pages, float64(most)))) }

// hopeless reports that no useful batch fits into the bound.
func (s *sizer) hopeless() bool {
	fixed, page := s.prices()
	bound := s.bound.Seconds()
	return s.bound > 0 && s.weight >= 3 && (fixed > (1-useful)*goalMost*bound || page > bound)
}

// why says what cannot be kept; "" when the bound can.
func (s *sizer) why(unit string) string {
	if !s.hopeless() {
		return ""
	}
	fixed, page := s.prices()
	return fmt.Sprintf("a call takes %v however few pages it has, and %v for each %s: %v cannot be held",
		seconds(fixed), seconds(page), unit, s.bound)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// prices returns the fixed price and the price per page, in seconds.
func (s *sizer) prices() (fixed, page float64) {
	if s.weight == 0 {
		return 0, 0
	}
	n, t := s.n/s.weight, s.t/s.weight
	spread := s.nn/s.weight - n*n
	if spread > 1e-3*n*n {
		page = max(0, (s.nt/s.weight-n*t)/spread)
	} else if s.calls == 1 {
		page = t / n
	}
	fixed = max(0, t-page*n)
	if most := min(s.quick, s.quickBefore); fixed > most { // (2)
		fixed = most
	}
	return fixed, max(0, t-fixed) / n
}

// expect is the time that a call of so many pages should take by the fitted prices.
func (s *sizer) expect(pages int) time.Duration {
	fixed, page := s.prices()
	return time.Duration((fixed + page*float64(pages)) * float64(time.Second))
}

// observe learns from a call, and reports whether it was over the bound.
func (s *sizer) observe(pages int, took time.Duration) (over bool) {
	over = s.bound > 0 && took > s.bound
	s.learn(float64(pages), s.tame(pages, took))
	s.calls++
	switch {
	case s.bound == 0:
	case over && !s.hopeless(): // (4)
		s.aim = max(leastAim, s.aim*afterOver)
		s.reach = max(1, min(s.reach, pages))
	case over:
		s.reach = max(s.reach, pages)
	default:
		s.aim = min(1, s.aim*recovery)
		s.reach = max(s.reach-s.reach/64, pages)
	}
	s.lastOver = over
	return over
}

// tame keeps a single outlier from distorting the prices. Two in a row are a change.
func (s *sizer) tame(pages int, took time.Duration) float64 {
	t := took.Seconds()
	if s.calls < 4 || s.lastOver {
		return t
	}
	return min(t, outlierAt*max(s.expect(pages).Seconds(), 1e-6))
}

func (s *sizer) learn(n, t float64) {
	for _, m := range []*float64{&s.weight, &s.n, &s.t, &s.nn, &s.nt} {
		*m *= forget
	}
	if s.calls%recentCalls == 0 {
		s.quick, s.quickBefore = math.Inf(1), s.quick
	}
	s.quick = min(s.quick, t)
	s.weight++
	s.n += n
	s.t += t
	s.nn += n * n
	s.nt += n * t
}
