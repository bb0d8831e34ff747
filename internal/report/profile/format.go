// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"strconv"
	"strings"
	"time"

	"homenode/internal/profile"
	"homenode/internal/unit"
)

const unknown = "unknown"

// showSpread is the (max − min) / median from which a figure's spread is shown:
// what the bench warns of. Lower puts a ± at every figure.
const showSpread = 0.05

// digits prints three significant digits, and never fewer than the integer has.
func digits(v float64) string {
	switch size := math.Abs(v); {
	case size >= 999.5 || v == math.Trunc(v) && size >= 100:
		return commas(v)
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case size >= 0.01 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// tenths prints one decimal: latencies, which people compare.
func tenths(v float64) string {
	if math.Abs(v) >= 9999.5 {
		return commas(v)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func commas(v float64) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	if math.Abs(v) >= 1e15 {
		text = strconv.FormatFloat(math.Abs(v), 'g', 3, 64)
	} else {
		for i := len(text) - 3; i > 0; i -= 3 {
			text = text[:i] + "," + text[i:]
		}
	}
	if v < 0 {
		return "-" + text
	}
	return text
}

// significant prints three significant digits of what is small, too: 0.0512.
func significant(v float64) string {
	if size := math.Abs(v); size == 0 || size >= 0.9995 || size < 1e-6 {
		return digits(v)
	}
	return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(math.Abs(v)))), 64)
}

// rates are bytes/s in the unit that suits all of one table or picture: GB/s, 10^9
// bytes as vendors count, or MB/s where nothing reaches one.
type rates struct {
	unit, power string
	scale       float64
}

func ratesOf(figures ...profile.Figure) rates {
	some, most := false, 0.0
	for _, f := range figures {
		v, ok := f.Median.Get()
		some, most = some || ok, max(most, v)
	}
	if some && most < 1e9 {
		return rates{"MB/s", "10^6", 1e6}
	}
	return rates{"GB/s", "10^9", 1e9}
}

func (r rates) print(v float64) string { return significant(v / r.scale) }

// figuresOf are those of anything that has one.
func figuresOf[T any](list []T, of func(T) profile.Figure) []profile.Figure {
	var out []profile.Figure
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

func pairFigures(list []profile.PairFigure) []profile.Figure {
	return figuresOf(list, func(f profile.PairFigure) profile.Figure { return f.Figure })
}

func ratio(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// spread is how far the farthest repeat is from the median, relative to it.
func spread(f profile.Figure) (float64, bool) {
	m, ok := f.Median.Get()
	if !ok || m == 0 || f.N < 2 {
		return 0, false
	}
	return max(f.Max-m, m-f.Min) / math.Abs(m), true
}

// show prints a figure, with its spread where that is large.
func show(f profile.Figure, print func(float64) string) string {
	m, ok := f.Median.Get()
	if !ok {
		return unknown
	}
	if wide := wideSpread(f); wide != "" {
		return print(m) + " ±" + wide
	}
	return print(m)
}

// wideSpread is "" where the spread is small.
func wideSpread(f profile.Figure) string {
	s, ok := spread(f)
	if !ok || f.Spread() <= showSpread {
		return ""
	}
	return strconv.FormatFloat(s*100, 'f', 0, 64) + "%"
}

func showOpt(o unit.Opt[float64], print func(float64) string) string {
	if v, ok := o.Get(); ok {
		return print(v)
	}
	return unknown
}

// why is the reason of an unknown figure.
func why(f profile.Figure) string { return orText(f.Why, "no reason is given") }

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// size prints bytes as people do: "1.5 MiB".
func size(b unit.Bytes) string {
	text := b.String()
	number := strings.TrimRight(text, "BKMGTPi")
	return number + " " + text[len(number):]
}

func sizeOpt(o unit.Opt[unit.Bytes]) string {
	b, ok := o.Get()
	if !ok {
		return unknown
	}
	return size(b)
}

func date(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// took prints seconds as a person says them: "7 min 12 s".
func took(seconds float64) string {
	if !(seconds > 0) || seconds > 1e9 { // nobody recorded it
		return unknown
	}
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	if d < time.Minute {
		return digits(seconds) + " s"
	}
	return strconv.Itoa(int(d.Minutes())) + " min " + strconv.Itoa(int(d.Seconds())%60) + " s"
}

// count says "1 node", "3 nodes".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// how is never left out: a modelled figure is not shown as a measured one.
func how(s unit.Source) string {
	switch s {
	case unit.HowModelled:
		return "modelled (lab)"
	case unit.HowMeasured:
		return "measured"
	}
	return s.String()
}
