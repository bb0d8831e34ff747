// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

const (
	none    = render.None
	unknown = render.Unknown
)

type unitOf struct {
	name  string
	scale float64
}

// spans are units of time, for an axis.
var spans = []unitOf{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}}

// perSecond is a rate; for a run of unknown length it is the whole amount.
func perSecond(ops, seconds float64) string {
	if rate := ops / seconds; rate <= most { // false for NaN
		return render.Number(rate) + "/s"
	}
	return render.Scaled(ops, 3)
}

// rangeOf is the lowest and the highest seed; "" with one seed, and if both are printed
// alike.
func rangeOf(s scenario.Spread, print func(float64) string) string {
	low, high := print(s.Min), print(s.Max)
	if s.N < 2 || low == high {
		return ""
	}
	return render.Range(low, high)
}

// changeRange is the range of changes: "−11.2% to −8.1%".
func changeRange(s scenario.Spread) string {
	low, high := render.Change(s.Min), render.Change(s.Max)
	if s.N < 2 || low == high {
		return ""
	}
	return low + " to " + high
}
