// SPDX-License-Identifier: Apache-2.0

package variation

import (
	"math"
	"strconv"
	"strings"

	"homenode/internal/trial"
	"homenode/internal/unit"
)

const unknown = "unknown"

// scale is one unit for all times of a report.
type scale struct {
	name   string
	factor float64 // of seconds
	digits int
}

// scaleOf gives the shortest median at least three digits before or after the point.
func scaleOf(v trial.Variation) scale {
	least := math.Inf(1)
	for _, a := range v.Arms {
		if a.Time.N > 0 {
			least = min(least, a.Time.Median)
		}
	}
	model := ""
	if v.How == unit.HowModelled {
		model = "model-"
	}
	switch {
	case least >= 100 && !math.IsInf(least, 1):
		return scale{model + "s", 1, 1}
	case least >= 1:
		return scale{model + "s", 1, 3}
	case least >= 0.1:
		return scale{model + "ms", 1e3, 1}
	}
	return scale{model + "ms", 1e3, 3}
}

func (s scale) of(seconds float64) string {
	return strconv.FormatFloat(seconds*s.factor, 'f', s.digits, 64)
}

func (s scale) span(low, high float64) string { return s.of(low) + "–" + s.of(high) }

// percent has two decimals below 1 %.
func percent(v float64) string {
	if math.Abs(v) < 0.01 {
		return strconv.FormatFloat(v*100, 'f', 2, 64) + "%"
	}
	return strconv.FormatFloat(v*100, 'f', 1, 64) + "%"
}

// times prints a ratio.
func times(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

func variationOf(s trial.Summary) string {
	cv, ok := s.Variation()
	if !ok {
		return unknown
	}
	return percent(cv)
}

func interval(s scale, ci trial.Interval) string {
	if !ci.Known() {
		return unknown
	}
	return s.span(ci.Low, ci.High)
}

// against is "0.85 (0.82–0.88)"; of the first arm it is 1.
func against(i int, r unit.Opt[trial.Ratio]) string {
	v, ok := r.Get()
	switch {
	case i == 0:
		return "1"
	case !ok:
		return unknown
	case !v.CI.Known():
		return times(v.Value)
	}
	return times(v.Value) + " (" + times(v.CI.Low) + "–" + times(v.CI.High) + ")"
}

// verdict is what the interval against the first arm says.
func verdict(i int, r unit.Opt[trial.Ratio]) string {
	v, ok := r.Get()
	switch {
	case i == 0 || !ok:
		return ""
	case v.CI.Coverage < trial.Nominal:
		return "too few runs"
	case !v.Differs():
		return "within noise"
	case v.Value < 1:
		return "faster"
	}
	return "slower"
}

// whole prints a count; medians of even numbers of runs may end in a half.
func whole(o unit.Opt[float64]) string {
	v, ok := o.Get()
	if !ok {
		return unknown
	}
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func size(o unit.Opt[float64]) string {
	v, ok := o.Get()
	if !ok {
		return unknown
	}
	return unit.Bytes(v).String()
}

func cpuTime(s scale, o unit.Opt[float64]) string {
	v, ok := o.Get()
	if !ok {
		return unknown
	}
	return s.of(v)
}

// list says "a", "a and b", "a, b and c".
func list(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
