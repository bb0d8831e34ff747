// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"slices"
)

// Nominal is the coverage that an interval aims at.
const Nominal = 0.95

// Interval is a confidence interval. Coverage is the share of such intervals
// that hold the true value: at least Nominal if there are enough runs, less if
// there are too few. The zero Interval is unknown.
type Interval struct {
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Coverage float64 `json:"coverage"`
}

// IsZero makes `json:",omitzero"` leave out an unknown interval.
func (i Interval) IsZero() bool { return i == Interval{} }

// Known says whether there is an interval.
func (i Interval) Known() bool { return i.Coverage > 0 }

// Has says whether the interval contains v.
func (i Interval) Has(v float64) bool { return i.Low <= v && v <= i.High }

// medianInterval is the interval of the median between two order statistics, of
// values in ascending order. It assumes nothing about their distribution, only
// that the runs are independent of each other.
//
//  1. The median lies between the k-th smallest and the k-th largest of n values, unless
//     fewer than k of them are on one side of it. That is the probability of a fair coin,
//     thrown n times (David and Nagaraja, Order Statistics, 7.1).
//  2. The largest k is taken whose coverage is at least Nominal.
//  3. Below 6 values there is no such k: even the range from smallest to largest holds the
//     median only with 1 − 2^(1−n): 94 % for 5, 88 % for 4, 75 % for 3. That range is
//     returned, with that coverage. A bootstrap of the median gives the same: the 2.5th
//     percentile of the resampled medians of up to 5 values is the smallest value.
func medianInterval(sorted []float64) Interval {
	n := len(sorted)
	if n < 2 {
		return Interval{}
	}
	k, outside := 1, math.Pow(0.5, float64(n)) // P(fewer than k heads), k = 1
	for term := outside; ; k++ {               // 1
		term = term * float64(n-k+1) / float64(k) // P(k heads)
		if 2*(outside+term) > 1-Nominal {         // 2, 3
			break
		}
		outside += term
	}
	return Interval{Low: sorted[k-1], High: sorted[n-k], Coverage: 1 - 2*outside}
}

// Ratio compares two arms: this one's figure as a multiple of the other's.
type Ratio struct {
	Value float64  `json:"value"`
	CI    Interval `json:"interval"`
}

// Differs says that the interval has at least Nominal coverage and does not
// contain 1: the difference is more than the noise of the runs.
func (r Ratio) Differs() bool { return r.CI.Coverage >= Nominal && !r.CI.Has(1) }

// mostExact bounds the exact count of the Mann-Whitney distribution. Beyond it
// the normal distribution is used (TestDecisionRatioCoverage has 45 runs each).
const mostExact = 1600

// RatioOf returns this arm's figure as a multiple of base's. ok is false if one of
// them has no value, or one that is not above 0.
//
//  1. All n × m ratios of a value of one and a value of the other, ascending. Their
//     median is the estimate (Hodges and Lehmann, 1963, of logarithms).
//  2. The interval is Moses': from the k-th smallest to the k-th largest, the
//     inversion of the rank test of Mann and Whitney (Hollander and Wolfe,
//     Nonparametric Statistical Methods, 4.3). It is exact if the two distributions
//     differ only by a factor; it assumes nothing else about them.
//  3. The largest k is taken whose coverage is at least Nominal. Below 4 runs each
//     (except 3 and 5, and 2 and 8) there is no such k: the interval is then from the
//     smallest to the largest, with the coverage that this has.
func RatioOf(values, base []float64) (r Ratio, ok bool) {
	ratios := make([]float64, 0, len(values)*len(base))
	for _, v := range values {
		for _, b := range base {
			if !(v > 0) || !(b > 0) {
				return Ratio{}, false
			}
			ratios = append(ratios, v/b) // 1
		}
	}
	if len(ratios) == 0 {
		return Ratio{}, false
	}
	k, coverage := moses(len(values), len(base)) // 2
	return between(ratios, k, coverage), true
}

// between is the median of some ratios, and the interval between the k-th smallest and the k-th
// largest of them. It sorts them. One alone has no interval.
func between(ratios []float64, k int, coverage float64) (r Ratio) {
	slices.Sort(ratios)
	r.Value = middle(ratios)
	if len(ratios) > 1 {
		r.CI = Interval{Low: ratios[k-1], High: ratios[len(ratios)-k], Coverage: coverage}
	}
	return r
}

// moses returns k ≥ 1, and the coverage of the interval between the k-th smallest
// and the k-th largest ratio: 1 − 2 P(U < k) (3).
func moses(n, m int) (k int, coverage float64) {
	if n*m > mostExact {
		return rankNormal(float64(n*m)/2, math.Sqrt(float64(n*m*(n+m+1))/12))
	}
	return rankExact(mannWhitney(n, m))
}

// rankExact returns the largest k ≥ 1 for which the statistic is below k or above its mirror with 1 −
// Nominal at most, and the probability that it is not. ways are the weights of its values, from 0 on.
func rankExact(ways []float64) (k int, coverage float64) {
	all := 0.0
	for _, w := range ways {
		all += w
	}
	k, below := 1, ways[0]
	for k < len(ways)/2 && 2*(below+ways[k]) <= (1-Nominal)*all {
		below += ways[k]
		k++
	}
	return k, 1 - 2*below/all
}

// rankNormal is rankExact for a statistic that is nearly normal.
func rankNormal(mean, sd float64) (k int, coverage float64) {
	const z = 1.959964 // 97.5th percentile
	return max(1, int(math.Floor(mean-z*sd))), Nominal
}

// mannWhitney counts the orders of n and m values in which U is 0, 1, … n·m:
// the coefficients of the Gaussian binomial (n+m over n).
func mannWhitney(n, m int) []float64 {
	ways := make([]float64, n*m+1)
	ways[0] = 1
	for i := 1; i <= n; i++ {
		for u := n * m; u >= m+i; u-- { // × (1 − x^(m+i))
			ways[u] -= ways[u-m-i]
		}
		for u := i; u <= n*m; u++ { // ÷ (1 − x^i)
			ways[u] += ways[u-i]
		}
	}
	return ways
}

// PairedRatio is RatioOf where value i and base i were measured one after the other, so that what
// drifts is nearly the same in both.
//
//  1. The ratio of each pair, and the geometric mean of each two of these n ratios (and of each with
//     itself). Their median is the estimate (Hodges and Lehmann, 1963, of logarithms).
//  2. The interval is Tukey's: from the k-th smallest to the k-th largest of these means, the
//     inversion of Wilcoxon's signed rank test (Hollander and Wolfe, Nonparametric Statistical
//     Methods, 3.3). It assumes that a pair's logarithm is as likely above the true one as below it:
//     so it is where every other pair is in the other order, whatever the load's drift.
//  3. The largest k is taken whose coverage is at least Nominal. Below 6 pairs there is no such k:
//     the interval is then from the smallest to the largest, with the coverage that this has.
func PairedRatio(values, base []float64) (r Ratio, ok bool) {
	n := len(values)
	if n == 0 || n != len(base) {
		return Ratio{}, false
	}
	ratios := make([]float64, n)
	for i, v := range values {
		if !(v > 0) || !(base[i] > 0) {
			return Ratio{}, false
		}
		ratios[i] = v / base[i]
	}
	means := make([]float64, 0, n*(n+1)/2)
	for i, x := range ratios {
		for _, y := range ratios[i:] {
			means = append(means, math.Sqrt(x)*math.Sqrt(y)) // 1
		}
	}
	k, coverage := tukey(n) // 2
	return between(means, k, coverage), true
}

// mostPairs bounds the exact count of the signed rank distribution.
const mostPairs = 60

// tukey returns k ≥ 1, and the coverage of the interval between the k-th smallest and the k-th
// largest mean: 1 − 2 P(T < k) (3).
func tukey(n int) (k int, coverage float64) {
	if n > mostPairs {
		return rankNormal(float64(n*(n+1))/4, math.Sqrt(float64(n*(n+1)*(2*n+1))/24))
	}
	half := n * (n + 1) / 2
	ways := make([]float64, half+1) // P(T = t): of 2^n signs, as a share
	ways[0] = 1
	for rank := 1; rank <= n; rank++ {
		for t := half; t >= 0; t-- {
			ways[t] /= 2
			if t >= rank {
				ways[t] += ways[t-rank] / 2
			}
		}
	}
	return rankExact(ways)
}
