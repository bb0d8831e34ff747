// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"math"
	"strconv"
	"strings"

	"homenode/internal/report"
	"homenode/internal/sim/arena"
	"homenode/internal/unit"
)

const unknown = "unknown"

// times is a ratio to the other policy's figure: ×1.08, ×0.0312, ×215.
func times(v float64) string { return "×" + digits(v) }

// digits has three significant digits; from 0.5 to 10 two decimals, for columns that align.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0"
	case size >= 1e9:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size >= 999.5:
		return report.Commas(v)
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.0995:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// counted is a count that may be a mean.
func counted(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 9.95 && v != math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return report.Commas(v)
}

func percent(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0%"
	case size < 0.01:
		return strconv.FormatFloat(v*100, 'f', 2, 64) + "%"
	}
	return strconv.FormatFloat(v*100, 'f', 1, 64) + "%"
}

// change is signed: "−12.1%".
func change(v float64) string {
	switch {
	case v < 0:
		return "−" + percent(-v)
	case v > 0:
		return "+" + percent(v)
	}
	return percent(v)
}

var sizes = []struct {
	name  string
	scale float64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func bytes(v float64) string {
	if v == 0 {
		return "0"
	}
	for _, u := range sizes {
		if v >= u.scale*0.9995 {
			return strconv.FormatFloat(v/u.scale, 'f', 1, 64) + " " + u.name
		}
	}
	return "<1 B"
}

// shown is a figure, or that there is none.
func shown(e arena.Estimate, print func(float64) string) string {
	if e.N == 0 {
		return "none"
	}
	return print(e.Median)
}

func shownOpt(o unit.Opt[float64], print func(float64) string) string {
	if v, ok := o.Get(); ok {
		return print(v)
	}
	return unknown
}

// interval is "1.02–1.08", or that there is none.
func interval(e arena.Estimate) string {
	if !e.CI.Known() {
		return unknown
	}
	return digits(e.CI.Low) + "–" + digits(e.CI.High)
}

// lasted prints seconds as people say them.
func lasted(s float64) string {
	switch {
	case s <= 0:
		return unknown
	case s < 1:
		return strconv.FormatFloat(s*1000, 'g', 4, 64) + " ms"
	case s < 120:
		return strconv.FormatFloat(s, 'g', 4, 64) + " s"
	}
	return strconv.FormatFloat(s/60, 'g', 4, 64) + " min"
}

// count says "1 seed", "3 seeds", "2 mixes", "3 policies".
func count(n int, what string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(what, "x"):
		what += "es"
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ies"
	default:
		what += "s"
	}
	return report.Commas(float64(n)) + " " + what
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
