// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"strconv"
	"strings"

	"homenode/internal/report"
	"homenode/internal/sim/scenario"
)

// none is a figure that there is none of: latency of a service without requests.
const (
	none    = "none"
	unknown = "unknown"
)

// digits prints three significant digits, and never fewer than the integer has.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0"
	case size >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size >= 999.5:
		return report.Commas(v)
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case size >= 0.001:
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(size))), 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// whole prints a count; the median of an even number of seeds may end in a half.
func whole(v float64) string {
	if v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return report.Commas(v)
}

func ratio(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// times is a ratio to another arm's figure.
func times(v float64) string {
	if v >= 100 {
		return "×" + digits(v)
	}
	return "×" + strconv.FormatFloat(v, 'f', 3, 64)
}

// scaled prints v in the largest unit that it reaches.
func scaled(v float64, units ...unitOf) string {
	for _, u := range units {
		if v >= u.scale*0.9995 {
			return digits(v/u.scale) + " " + u.name
		}
	}
	last := units[len(units)-1]
	return digits(v/last.scale) + " " + last.name
}

type unitOf struct {
	name  string
	scale float64
}

var (
	spans  = []unitOf{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}}
	sizes  = []unitOf{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
	clocks = []unitOf{{"h", 3600}, {"s", 1}}
)

// span prints seconds: "340 µs", "12.3 ms".
func span(v float64) string { return scaled(v, spans...) }

func size(v float64) string {
	if v == 0 {
		return "0"
	}
	return scaled(v, sizes...)
}

// cpuTime is long: "213 h".
func cpuTime(v float64) string {
	if v >= 100*3600 {
		return scaled(v, clocks...)
	}
	return digits(v) + " s"
}

// lasted prints a duration of hours and days as people say it.
func lasted(seconds float64) string {
	switch {
	case !(seconds > 0):
		return unknown
	case seconds < 120:
		return digits(seconds) + " s"
	case seconds < 7200:
		return digits(seconds/60) + " min"
	}
	return digits(seconds/3600) + " h"
}

// perSecond of a run of unknown length is all of it.
func perSecond(ops, seconds float64) string {
	switch rate := ops / seconds; {
	case rate <= most: // NaN is not
		return digits(rate) + "/s"
	case ops >= 1e6:
		return scaled(ops, unitOf{"G", 1e9}, unitOf{"M", 1e6})
	}
	return digits(ops)
}

// percent of a share: two decimals below 1 %.
func percent(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0%"
	case size < 0.01:
		return strconv.FormatFloat(v*100, 'f', 2, 64) + "%"
	case size < 1:
		return strconv.FormatFloat(v*100, 'f', 1, 64) + "%"
	}
	return digits(math.Round(v*100)) + "%"
}

// change is signed: "−12.1%".
func change(v float64) string {
	text := percent(math.Abs(v))
	switch {
	case v < 0:
		return "−" + text
	case v > 0:
		return "+" + text
	}
	return text
}

// rangeOf is the lowest and the highest seed; "" of one seed, and of seeds that
// are printed alike.
func rangeOf(s scenario.Spread, print func(float64) string) string {
	low, high := print(s.Min), print(s.Max)
	if s.N < 2 || low == high {
		return ""
	}
	return joinRange(low, high)
}

// joinRange says a unit once.
func joinRange(low, high string) string {
	low = strings.TrimPrefix(low, "×")
	high = strings.TrimPrefix(high, "×")
	number, unit, spaced := strings.Cut(low, " ")
	if _, same, _ := strings.Cut(high, " "); spaced && same == unit {
		low = number
	}
	if strings.HasSuffix(low, "/s") && strings.HasSuffix(high, "/s") {
		low = strings.TrimSuffix(low, "/s")
	}
	return low + "–" + high
}

// changeRange is the range of changes: "−11.2% to −8.1%".
func changeRange(s scenario.Spread) string {
	low, high := change(s.Min), change(s.Max)
	if s.N < 2 || low == high {
		return ""
	}
	return low + " to " + high
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// count says "1 seed", "3 seeds".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return report.Commas(float64(n)) + " " + what + "s"
}
