// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"

	"homenode/internal/experiment"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// scale is one unit for all times of a report.
type scale struct {
	name   string
	factor float64 // of seconds
	digits int
}

// scaleOf gives the shortest median at least three digits before or after the point.
func scaleOf(v experiment.Variation) scale {
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
	return render.Fixed(seconds*s.factor, s.digits)
}

func (s scale) span(low, high float64) string { return s.of(low) + "–" + s.of(high) }

func variationOf(s experiment.Summary) string {
	cv, ok := s.Variation()
	if !ok {
		return unknown
	}
	return render.Percent(cv)
}

func interval(s scale, ci experiment.Interval) string {
	if !ci.Known() {
		return unknown
	}
	return s.span(ci.Low, ci.High)
}

// against is "0.85 (0.82–0.88)"; of the first arm it is 1.
func against(i int, r unit.Opt[experiment.Ratio]) string {
	v, ok := r.Get()
	switch {
	case i == 0:
		return "1"
	case !ok:
		return unknown
	case !v.CI.Known():
		return render.Ratio(v.Value)
	}
	return render.Ratio(v.Value) + " (" + render.Ratio(v.CI.Low) + "–" + render.Ratio(v.CI.High) + ")"
}

// armVerdict is the meaning of the interval against the first arm.
func armVerdict(i int, r unit.Opt[experiment.Ratio]) string {
	v, ok := r.Get()
	switch {
	case i == 0 || !ok:
		return ""
	case v.CI.Coverage < experiment.Nominal:
		return "too few runs"
	case !v.Differs():
		return "within noise"
	case v.Value < 1:
		return "faster"
	}
	return "slower"
}
