// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
)

// Prediction is a workload's speed in one placement, relative to the baseline.
type Prediction struct {
	Speed float64
	// With the forest's confidence it is between Low and High. Known is false where too few
	// workloads were measured to say that.
	Low, High float64
	Known     bool
}

// Predict takes the speeds of a forest's probes, in any unit and in their order.
//
//  1. An input is a probe's speed relative to the baseline's, rounded to float32.
//  2. A tree goes left where input ≤ threshold, compared as float64.
//  3. Leaves are added in the order of trees, in float64, and divided by their number.
//
// That is how scikit-learn does it, so these are its bits.
func (f *Forest) Predict(speeds []float64) ([]Prediction, error) {
	if len(speeds) != len(f.Probes) {
		return nil, fmt.Errorf("predict: %d speeds of %d probes", len(speeds), len(f.Probes))
	}
	for i, s := range speeds {
		if !(s > 0) || math.IsInf(s, 1) {
			return nil, fmt.Errorf("predict: speed %v in placement %d: want a number above 0: measure it again", s, f.Probes[i])
		}
	}
	inputs := make([]float64, len(f.Features))
	for i := range inputs {
		inputs[i] = speeds[i+1] / speeds[0]
	}
	out := make([]Prediction, len(f.Interval))
	for i, speed := range f.relative(inputs) {
		out[i] = Prediction{Speed: speed}
		if width := f.Interval[i]; width != nil {
			out[i].Low, out[i].High, out[i].Known = max(0, speed*(1-*width)), speed*(1+*width), true
		}
	}
	return out, nil
}

func (f *Forest) relative(inputs []float64) []float64 {
	x := make([]float64, len(inputs))
	for i, v := range inputs { // 1
		x[i] = float64(float32(v))
	}
	sum := make([]float64, len(f.Interval))
	for i := range f.Trees { // 3
		for k, v := range f.Trees[i].leaf(x) {
			sum[k] += v
		}
	}
	for k := range sum {
		sum[k] /= float64(len(f.Trees))
	}
	return sum
}

// leaf is number 2.
func (t *Tree) leaf(x []float64) []float64 {
	at := 0
	for t.Feature[at] >= 0 {
		if x[t.Feature[at]] <= t.Threshold[at] {
			at = t.Left[at]
		} else {
			at = t.Right[at]
		}
	}
	return t.Values[t.Left[at]]
}
