// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
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

// At gives predictions bounds of another confidence: with it, a speed is at least Low, and with
// it, it is at most High. Each bound is split-conformal by itself: of n workloads that the
// forest had not seen, the (n+1)(1−confidence)-th smallest measured / predicted, or the largest.
// Known is false where there were too few of them.
func (f *Forest) At(predictions []Prediction, confidence float64) ([]Prediction, error) {
	switch {
	case !(confidence > 0 && confidence < 1):
		return nil, fmt.Errorf("confidence %v: want between 0 and 1, such as 0.95", confidence)
	case len(f.Ratios) != len(predictions):
		return nil, errors.New("the model has bounds of its own confidence only: train it again")
	}
	out := make([]Prediction, len(predictions))
	for i, p := range predictions {
		n := len(f.Ratios[i])
		// Without the last digits of 61 × (1 − 0.9), 6.1 is not 6.0999….
		k := int(math.Floor(float64(n+1)*(1-confidence) + 1e-9))
		out[i] = Prediction{Speed: p.Speed}
		if k > 0 && k <= n {
			low, high := p.Speed*f.Ratios[i][k-1], p.Speed*f.Ratios[i][n-k]
			out[i].Low, out[i].High, out[i].Known = min(low, p.Speed), max(high, p.Speed), true
		}
	}
	return out, nil
}

// MostConfidence is the highest confidence for which At knows bounds; 0: none.
func (f *Forest) MostConfidence() float64 {
	if len(f.Ratios) == 0 || len(f.Ratios[0]) == 0 {
		return 0
	}
	return 1 - 1/float64(len(f.Ratios[0])+1)
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
