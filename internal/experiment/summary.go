// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"slices"
)

// Summary describes the repeats of one figure in one arm.
type Summary struct {
	N      int       `json:"n"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Mean   float64   `json:"mean"`
	SD     float64   `json:"sd"` // standard deviation of the sample; 0 for one value
	Values []float64 `json:"values"`
	// CI is the interval of the median; unknown for one value.
	CI Interval `json:"interval,omitzero"`
}

// Summarise takes the values of the repeats; ok is false if there are none.
// NaN (unknown) values are left out.
func Summarise(values []float64) (s Summary, ok bool) {
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Values = append(s.Values, v)
		}
	}
	s.N = len(s.Values)
	if s.N == 0 {
		return Summary{}, false
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	s.Min, s.Max, s.Median = sorted[0], sorted[s.N-1], middle(sorted)
	s.CI = medianInterval(sorted)
	for _, v := range s.Values {
		s.Mean += v / float64(s.N)
	}
	for _, v := range s.Values {
		s.SD += (v - s.Mean) * (v - s.Mean)
	}
	if s.N > 1 {
		s.SD = math.Sqrt(s.SD / float64(s.N-1))
	} else {
		s.SD = 0
	}
	return s, true
}

// Median of values, which are numbers; of an even number of them it is the mean of the
// middle two. ok is false without values.
func Median(values []float64) (median float64, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	return middle(slices.Sorted(slices.Values(values))), true
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// RelativeSpread is (max − min) / median: the noise of the repeats.
func (s Summary) RelativeSpread() float64 {
	if s.Median == 0 {
		return 0
	}
	return (s.Max - s.Min) / s.Median
}

// Variation is the coefficient of variation: SD / mean. ok is false for one value,
// and if the mean is not above 0.
func (s Summary) Variation() (cv float64, ok bool) {
	if s.N < 2 || !(s.Mean > 0) {
		return 0, false
	}
	return s.SD / s.Mean, true
}
