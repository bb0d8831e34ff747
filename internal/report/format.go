// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"homenode/internal/trial"
	"homenode/internal/unit"
)

const unknown = "unknown"

// figure prints four significant digits: 0.01234, 12.35, 1,235, 12.35 M.
func figure(v float64) string {
	switch size := math.Abs(v); {
	case size >= 1e10:
		return decimals(v/1e9) + " G"
	case size >= 1e7:
		return decimals(v/1e6) + " M"
	default:
		return decimals(v)
	}
}

func decimals(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0"
	case size < 0.001:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case size < 1:
		return strconv.FormatFloat(v, 'f', 4, 64)
	case size < 999.95:
		return strconv.FormatFloat(v, 'f', 3-int(math.Log10(size)), 64)
	default:
		return Commas(v)
	}
}

func ratio(v float64) string   { return strconv.FormatFloat(v, 'f', 3, 64) }
func times(v float64) string   { return strconv.FormatFloat(v, 'f', 2, 64) }
func percent(v float64) string { return unit.Ratio(v).String() }
func millis(us float64) string { return figure(us / 1000) }

// show prints a value, or that it is unknown.
func show(o unit.Opt[float64], print func(float64) string) string {
	if v, ok := o.Get(); ok {
		return print(v)
	}
	return unknown
}

// positive is for plain numbers in which 0 says that nobody recorded it.
func positive(v float64, print func(float64) string) string {
	return show(unit.OptOf(v, v > 0), print)
}

func orUnknown(text string) string {
	if text == "" {
		return unknown
	}
	return text
}

// minToMax is the range of the repeats. One repeat has none.
func minToMax(s trial.Summary, print func(float64) string) string {
	if s.N < 2 {
		return unknown
	}
	return print(s.Min) + "–" + print(s.Max)
}

// plusMinus is how far the farthest repeat is from the median, relative to it.
func plusMinus(s trial.Summary) string {
	if s.N < 2 || s.Median == 0 {
		return unknown
	}
	far := max(s.Max-s.Median, s.Median-s.Min) / math.Abs(s.Median)
	return "±" + smallPercent(far)
}

// smallPercent has two decimals below 1 %: the noise of a spinner is there.
func smallPercent(v float64) string {
	if math.Abs(v) < 0.01 {
		return strconv.FormatFloat(v*100, 'f', 2, 64) + "%"
	}
	return percent(v)
}

// got prints what a target came to, with as many digits as it takes not to
// round a miss into the limit: 0.9496 missed 0.95, and must not read 0.950.
func got(t trial.Target) string {
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

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "NOT MET"
}

func date(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// took prints seconds as a person says them: "7 min 12 s".
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if d < time.Minute {
		return figure(seconds) + " s"
	}
	return strconv.Itoa(int(d.Minutes())) + " min " + strconv.Itoa(int(d.Seconds())%60) + " s"
}

// count says "1 run", "3 runs".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// List says "a", "a and b", "a, b and c".
func List(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
