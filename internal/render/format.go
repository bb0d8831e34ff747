// SPDX-License-Identifier: Apache-2.0

package render

import (
	"math"
	"strconv"
	"strings"
	"time"

	"homenode/internal/unit"
)

// Unknown is printed in place of a figure that is not known.
const Unknown = "unknown"

// Number prints three significant digits, and never fewer than the integer has:
// 0, 0.0123, 1.23, 12.3, 1,235.
func Number(v float64) string { return Significant(v, 3) }

// Significant prints so many significant digits, and never fewer than the integer has.
func Significant(v float64, digits int) string {
	size := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case size < 0.0001 || size >= 1e15:
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	return Fixed(v, max(0, digits-1-magnitude(size, digits)))
}

// magnitude is the power of ten of a figure after it was rounded to so many digits:
// 0.9996 with three digits is 1.00.
func magnitude(size float64, digits int) int {
	text := strconv.FormatFloat(size, 'e', digits-1, 64)
	power, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	return power
}

// Scaled is Significant with G and M for large figures: 12.35 M.
func Scaled(v float64, digits int) string {
	switch size := math.Abs(v); {
	case size >= 1e10:
		return Significant(v/1e9, digits) + " G"
	case size >= 1e7:
		return Significant(v/1e6, digits) + " M"
	}
	return Significant(v, digits)
}

// ShortBytes prints an amount in at most five characters, for a narrow column: "312M",
// "1.5G".
func ShortBytes(b unit.Bytes) string {
	v, names := float64(b), "BKMGTP"
	i := 0
	for v >= 1023.5 && i < len(names)-1 {
		v, i = v/1024, i+1
	}
	decimals := 0
	if v < 9.95 && i > 0 {
		decimals = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', decimals, 64), ".0") + strings.TrimSuffix(names[i:i+1], "B")
}

// Short prints an axis' figure without trailing zeros: 0.2, 50, 100k, 20M.
func Short(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	for _, scale := range []struct {
		unit float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= scale.unit {
			if scale.name == "k" {
				scale.unit = 1e3
			}
			return strconv.FormatFloat(v/scale.unit, 'g', 4, 64) + scale.name
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Fixed prints so many decimals, and groups the thousands.
func Fixed(v float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if v < 0 {
		return "-" + whole
	}
	return whole
}

// Whole prints a count; a mean or a median of counts has one decimal.
func Whole(v float64) string {
	if v != math.Trunc(v) && math.Abs(v) < 1e6 {
		return Fixed(v, 1)
	}
	return Commas(v)
}

// Commas prints a whole number: 1,234,567.
func Commas(v float64) string {
	if math.Abs(v) >= 1e15 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return Fixed(v, 0)
}

// Ratio prints a share or a ratio between 0 and 1 with three decimals.
func Ratio(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// Percent prints a share: "57.8%"; below 1 % it has two decimals, for small is not nothing.
func Percent(v float64) string {
	switch size := math.Abs(v); {
	case v == 0:
		return "0%"
	case size < 0.01:
		return strconv.FormatFloat(v*100, 'f', 2, 64) + "%"
	case size < 10:
		return strconv.FormatFloat(v*100, 'f', 1, 64) + "%"
	}
	return Commas(v*100) + "%"
}

// Change prints a relative change with its sign: "−12.1%".
func Change(v float64) string { return Signed(v, Percent) }

// Signed prints the sign, then the rest.
func Signed(v float64, print func(float64) string) string {
	switch {
	case v < 0:
		return "−" + print(-v)
	case v > 0:
		return "+" + print(v)
	}
	return print(v)
}

// Times prints a ratio to another figure: "×1.083", "×48.2". Near 1 it has three decimals:
// that is where ratios are compared.
func Times(v float64) string {
	if size := math.Abs(v); size >= 0.0995 && size < 9.995 {
		return "×" + Fixed(v, 3)
	}
	return "×" + Number(v)
}

// WholePercent prints a share where there is no room, or no reason, for decimals: "58%".
func WholePercent(v float64) string { return Commas(v*100) + "%" }

// Tenths prints one decimal, for latencies, which people compare.
func Tenths(v float64) string {
	if math.Abs(v) >= 9999.5 {
		return Commas(v)
	}
	return Fixed(v, 1)
}

// CPUs prints CPUs' worth of time with two decimals: on which side of a limit it is.
func CPUs(v float64) string { return Fixed(v, 2) }

// Bytes prints an amount that may be a mean, as unit.Bytes prints it.
func Bytes(v float64) string { return unit.Bytes(math.Round(v)).String() }

// Amount is Number for what has a unit. As with unit.Bytes, zeros at the end of a fraction
// are left out: exact amounts read as they were given, "50 ms".
func Amount(v float64) string { return shorten(Number(v)) }

// Precise is Amount with four significant digits, for evidence: enough to see on which
// side of a limit it is.
func Precise(v float64) string { return shorten(Significant(v, 4)) }

// shorten leaves out zeros at the end of a fraction.
func shorten(text string) string {
	if strings.ContainsAny(text, ".") && !strings.Contains(text, "e") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Rate prints bytes a second in powers of ten, as bandwidth is given: "12.3 GB/s".
func Rate(perSecond float64) string {
	for _, u := range []struct {
		name  string
		scale float64
	}{{"TB/s", 1e12}, {"GB/s", 1e9}, {"MB/s", 1e6}, {"kB/s", 1e3}} {
		if perSecond >= u.scale*0.9995 {
			return Amount(perSecond/u.scale) + " " + u.name
		}
	}
	return Amount(perSecond) + " B/s"
}

// Seconds prints a time: "340 ns", "12.3 ms", "15.8 s", "2 min 3 s", "26 h 5 min",
// "2,523 h".
func Seconds(s float64) string {
	if s == 0 {
		return "0 s"
	}
	for _, u := range []struct {
		name  string
		scale float64
	}{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}} {
		if s >= u.scale*0.9995 && s < 59.95 {
			return Amount(s/u.scale) + " " + u.name
		}
	}
	if s < 59.95 {
		return Amount(s*1e9) + " ns"
	}
	whole := math.Round(s)
	if whole < 3600 {
		return pair(whole, 60, "min", "s")
	}
	if whole >= 100*3600 {
		return Commas(whole/3600) + " h"
	}
	return pair(math.Round(whole/60), 60, "h", "min")
}

// pair prints "2 min 3 s", and "2 min" of a round one.
func pair(v, large float64, largeName, smallName string) string {
	text := Commas(math.Floor(v/large)) + " " + largeName
	if rest := math.Mod(v, large); rest > 0 {
		text += " " + Commas(rest) + " " + smallName
	}
	return text
}

// Span prints a duration as Seconds does.
func Span(d time.Duration) string { return Seconds(d.Seconds()) }

// Took prints how long something took; 0, and what no clock can have shown, is unknown.
func Took(seconds float64) string {
	if !(seconds > 0) || seconds > 1e9 {
		return Unknown
	}
	return Seconds(seconds)
}

// Date prints a moment to the minute.
func Date(t time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// Show prints a value, or that it is unknown.
func Show[T any](o unit.Opt[T], print func(T) string) string {
	if v, ok := o.Get(); ok {
		return print(v)
	}
	return Unknown
}

// Positive is for plain numbers in which 0 says that nothing was recorded.
func Positive(v float64, print func(float64) string) string {
	return Show(unit.OptOf(v, v > 0), print)
}

// Range prints "12.3–14.5 ms": a unit that both have is said once.
func Range(low, high string) string {
	low, high = strings.TrimPrefix(low, "×"), strings.TrimPrefix(high, "×")
	number, name, spaced := strings.Cut(low, " ")
	if _, same, _ := strings.Cut(high, " "); spaced && same == name && !strings.Contains(name, " ") {
		low = number
	}
	for _, end := range []string{"/s", "%"} {
		if strings.HasSuffix(low, end) && strings.HasSuffix(high, end) {
			low = strings.TrimSuffix(low, end)
		}
	}
	return low + "–" + high
}
