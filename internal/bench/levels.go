// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"

	"homenode/internal/profile"
)

const (
	// plateauCost is what one more plateau must save, as a sum of squared differences
	// of logarithms. A level of three steps that is three times as slow as the one
	// below saves 1.8; the ramp of a cache with randomly placed pages saves a half to
	// one. Lower finds plateaus on ramps, higher loses narrow levels.
	plateauCost = 1.1
	// levelRatio is the factor by which a level must be slower than the one below. The
	// TLB's steps (a second-level hit, a page walk) are 1.2 to 1.5; caches 1.8 to 5.
	levelRatio = 1.6
)

// cacheLevel is a level as steps of the scan: the last that fits, and one in the middle
// of its plateau.
type cacheLevel struct{ middle, last int }

// findLevels reads cache levels from latencies by working set, ascending. The last
// plateau is memory, and not a level.
//
//  1. Latency by working set is a staircase on a logarithmic scale: find the piecewise
//     constant with the least squared error, where each piece costs plateauCost
//     (optimal partitioning: exact, by dynamic programming). Steps on a ramp join the
//     nearer plateau by themselves.
//  2. Plateaus that are hardly slower than the one before are joined to it.
//  3. A plateau's latency is that of its middle step: those at its ends may be on
//     a ramp.
//  4. A cache's size is the largest step that is not beyond halfway from its plateau's
//     latency to the next one's: there half of the loads miss. With randomly placed
//     pages some sets overflow before it, others after; at the true size it is about
//     half of them.
func findLevels(sets []profile.SizeFigure) []cacheLevel {
	ns := make([]float64, len(sets))
	for i, s := range sets {
		ns[i] = s.Median.Or(0)
	}
	starts := mergeClose(ns, partition(ns)) // 1, 2
	var all []cacheLevel
	for i := 0; i+1 < len(starts); i++ {
		end := len(ns)
		if i+2 < len(starts) {
			end = starts[i+2]
		}
		middle, next := mid(starts[i], starts[i+1]), mid(starts[i+1], end) // 3
		half := (ns[middle] + ns[next]) / 2
		all = append(all, cacheLevel{middle, lastFitting(ns, middle, next, half)}) // 4
	}
	return all
}

// lastFitting is the step after which latencies are beyond half. If they alternate, it
// is the one with the least error on the wrong side.
func lastFitting(ns []float64, middle, next int, half float64) int {
	last, least, wrong := middle, 0.0, 0.0
	for i := middle + 1; i < next; i++ {
		wrong += ns[i] - half // beyond half it does not fit, below it would
		if wrong <= least {
			last, least = i, wrong
		}
	}
	return last
}

func mid(from, to int) int { return from + (to-from-1)/2 }

// partition returns where the pieces of the best piecewise constant begin.
func partition(ns []float64) []int {
	n := len(ns)
	sum, square := make([]float64, n+1), make([]float64, n+1)
	for i, v := range ns {
		l := math.Log(v)
		sum[i+1], square[i+1] = sum[i]+l, square[i]+l*l
	}
	best, from := make([]float64, n+1), make([]int, n+1)
	for end := 1; end <= n; end++ {
		best[end] = math.Inf(1)
		for start := range end {
			s := sum[end] - sum[start]
			cost := best[start] + plateauCost + square[end] - square[start] - s*s/float64(end-start)
			if cost < best[end] {
				best[end], from[end] = cost, start
			}
		}
	}
	var starts []int
	for end := n; end > 0; end = from[end] {
		starts = append([]int{from[end]}, starts...)
	}
	return starts
}

// mergeClose drops the starts of plateaus that are not levelRatio above the one before,
// by their middles.
func mergeClose(ns []float64, starts []int) []int {
	for i := 1; i < len(starts); {
		end := len(ns)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		if ns[mid(starts[i], end)] >= levelRatio*ns[mid(starts[i-1], starts[i])] {
			i++
			continue
		}
		starts = append(starts[:i:i], starts[i+1:]...)
		i = max(1, i-1)
	}
	return starts
}
