// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"

	"homenode/internal/profile"
	"homenode/internal/render"
)

const unknown = render.Unknown

// showSpread is the (max − min) / median from which a figure's spread is shown: bench
// warns from there on. Lower puts a ± at every figure.
const showSpread = 0.05

// rates are bytes/s in one unit for a table or picture: GB/s, 10^9 bytes as vendors
// count, or MB/s if no figure reaches one.
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

func (r rates) print(v float64) string { return render.Number(v / r.scale) }

// figuresOf are the figures of a list.
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

// spread is the distance of the farthest repeat from the median, relative to it.
func spread(f profile.Figure) (float64, bool) {
	m, ok := f.Median.Get()
	if !ok || m == 0 || f.N < 2 {
		return 0, false
	}
	return max(f.Max-m, m-f.Min) / math.Abs(m), true
}

// show prints a figure, with its spread if that is large.
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

// wideSpread is "" for a small spread.
func wideSpread(f profile.Figure) string {
	s, ok := spread(f)
	if !ok || f.Spread() <= showSpread {
		return ""
	}
	return render.WholePercent(s)
}

// why is the reason of an unknown figure.
func why(f profile.Figure) string { return render.Or(f.Why, "no reason is given") }

func ratio(v float64) string { return render.Fixed(v, 2) }
