// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"math/rand/v2"
)

// Steady says that the last n values lie within the given distance of each other:
// the warm-up has ended.
func Steady(values []float64, n int, within float64) bool {
	if n < 1 || len(values) < n {
		return false
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values[len(values)-n:] {
		low, high = min(low, v), max(high, v)
	}
	return high-low <= within
}

// Spread compares how much two arms vary: the mean distance of a run from its
// arm's median, relative to that median.
type Spread struct {
	// Ratio is this arm's spread over the other's: below 1 this arm is
	// steadier.
	Ratio float64 `json:"ratio"`
	// P is the probability of a ratio at least as far from 1 as this one, by chance
	// alone.
	P float64 `json:"p"`
}

// Differs says that chance alone would rarely cause it.
func (s Spread) Differs() bool { return s.P <= 1-Nominal }

const (
	shuffles = 9999
	// leastForSpread is the least number of runs for comparing the spread of two
	// arms: with 4 runs each the distances come in pairs, and chance alone was
	// called a difference in up to one case of 10 (TestDecisionSpread's simulation).
	leastForSpread = 5
	// mostSpread stands for infinity: the other arm did not vary at all.
	mostSpread = 1e6
)

// CompareSpread is a permutation test. ok is false if there are too few runs, or if
// none varies.
//
//  1. Each run's distance from its arm's median, relative to it. If the number of runs
//     is odd, one of them is the median and 0 by construction: it is left out, or the
//     test would find differences that do not exist.
//  2. The statistic is the ratio of the two means of these distances.
//  3. The distances are dealt to the two arms again, 9,999 times, from the seed. P is
//     the share of the deals whose ratio is at least as far from 1, including the real
//     one (Phipson and Smyth, 2010).
func CompareSpread(a, b Summary, seed uint64) (s Spread, ok bool) {
	da, db := distances(a), distances(b)
	if a.N < leastForSpread || b.N < leastForSpread || Mean(da)+Mean(db) == 0 {
		return Spread{}, false
	}
	s.Ratio = min(Mean(da)/Mean(db), mostSpread)
	far := math.Abs(math.Log(s.Ratio))
	all := append(da, db...)
	rng := rand.New(rand.NewPCG(seed, 0x737072656164))
	as := 1
	for range shuffles { // 3
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if dealt := math.Abs(math.Log(min(Mean(all[:len(da)])/Mean(all[len(da):]), mostSpread))); dealt >= far*(1-1e-9) {
			as++
		}
	}
	s.P = float64(as) / (shuffles + 1)
	return s, true
}

// distances are the relative distances of step 1; nil if the median is 0.
func distances(s Summary) []float64 {
	if s.Median == 0 {
		return nil
	}
	var out []float64
	dropped := s.N%2 == 0
	for _, v := range s.Values {
		d := math.Abs(v/s.Median - 1)
		if v == s.Median && !dropped {
			dropped = true
			continue
		}
		out = append(out, d)
	}
	return out
}

// Mean of values; NaN without any.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
