// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

const unknown = render.Unknown

// figure has four digits: differences of a few per cent must be visible.
func figure(v float64) string { return render.Scaled(v, 4) }

func times(v float64) string   { return render.Fixed(v, 2) }
func millis(us float64) string { return figure(us / 1000) }

// minToMax is the range of the repeats. One repeat has none.
func minToMax(s experiment.Summary, print func(float64) string) string {
	if s.N < 2 {
		return unknown
	}
	return render.Range(print(s.Min), print(s.Max))
}

// plusMinus is the distance of the farthest repeat from the median, relative to it.
func plusMinus(s experiment.Summary) string {
	if s.N < 2 || s.Median == 0 {
		return unknown
	}
	far := max(s.Max-s.Median, s.Median-s.Min) / math.Abs(s.Median)
	return "±" + render.Percent(far)
}

// got prints the result of a target, with enough digits that a miss is not rounded to
// the limit: 0.9496 missed 0.95, and must not read 0.950.
func got(t experiment.Target) string {
	v, ok := t.Got.Get()
	if !ok {
		return unknown
	}
	for digits := 3; ; digits++ {
		text := strconv.FormatFloat(v, 'f', digits, 64)
		shown, _ := strconv.ParseFloat(text, 64)
		if digits == 9 || (shown < t.Limit) == (v < t.Limit) && (shown > t.Limit) == (v > t.Limit) {
			return text
		}
	}
}

func metOrNot(met bool) string {
	if met {
		return "met"
	}
	return "NOT MET"
}
