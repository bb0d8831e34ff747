// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"homenode/internal/unit"
)

// FigureOf summarises the repeats of one measurement. Values that are not numbers (0/0,
// a counter that was not there) are left out; without values it is unknown.
func FigureOf(values []float64) Figure {
	var known []float64
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return UnknownFigure("nothing was measured")
	}
	slices.Sort(known)
	n := len(known)
	// Halves first: the sum of two large values may be infinite.
	median := float64(known[(n-1)/2]/2) + float64(known[n/2]/2)
	return Figure{Median: unit.Some(median), Min: known[0], Max: known[n-1], N: n}
}

// UnknownFigure is a figure that could not be measured, and why.
func UnknownFigure(why string) Figure { return Figure{Why: why} }

// Known says whether there is a value.
func (f Figure) Known() bool { return f.Median.Known() }

// Spread is (max - min) / median: the noise of the repeats. It is 0 for an unknown
// figure, and for a median of 0.
func (f Figure) Spread() float64 {
	median := f.Median.Or(0)
	if median == 0 {
		return 0
	}
	if s := (f.Max - f.Min) / math.Abs(median); !math.IsInf(s, 0) {
		return s
	}
	return 0
}

// LatencyBetween is ns a dependent load from a CPU of one node to the memory of
// another; false when it is not in the profile or unknown.
func (p Profile) LatencyBetween(from, to int) (Figure, bool) { return between(p.Latency, from, to) }

// BandwidthBetween is bytes/s that all CPUs of one node read from another.
func (p Profile) BandwidthBetween(from, to int) (Figure, bool) {
	return between(p.Bandwidth, from, to)
}

func between(pairs []PairFigure, from, to int) (Figure, bool) {
	for _, f := range pairs {
		if f.From == from && f.To == to {
			return f.Figure, f.Known()
		}
	}
	return Figure{}, false
}

// LLC is the size of the last level of cache that the scan of working sets found.
func (p Profile) LLC() (unit.Bytes, bool) {
	if len(p.Caches) == 0 {
		return 0, false
	}
	return p.Caches[len(p.Caches)-1].Size.Get()
}

var errNotNumber = errors.New("it has a value that is not a number")

// quantity is the quantity of a figure, and its possible values. A value far beyond any
// machine means a broken file, and would spoil every scale it is drawn on.
type quantity struct {
	unit string
	most float64
	zero bool // it can be 0
}

var (
	aTime  = quantity{unit: " ns", most: 1e12}      // a quarter of an hour
	aRate  = quantity{unit: " bytes/s", most: 1e15} // a thousand times what a machine of 2026 does
	aCount = quantity{most: 1e12, zero: true}       // an op, or a request
)

// can says whether a consistent figure is possible for a quantity.
func (q quantity) can(f Figure) error {
	cycles := f.Cycles.Or(0)
	switch {
	case !f.Known():
		return nil
	case f.Min < 0 || f.Min == 0 && !q.zero:
		return fmt.Errorf("%g%s cannot be", f.Min, q.unit)
	case f.Max > q.most:
		return fmt.Errorf("%g%s cannot be", f.Max, q.unit)
	case cycles < 0 || cycles > aCount.most:
		return fmt.Errorf("%g cycles cannot be", cycles)
	}
	return nil
}

// check holds the invariants of a figure: an unknown one has no values, a known one
// min <= median <= max of at least one repeat.
func (f Figure) check() error {
	median, known := f.Median.Get()
	cycles := f.Cycles.Or(0)
	for _, v := range []float64{median, f.Min, f.Max, cycles} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errNotNumber
		}
	}
	switch {
	case !known && (f.Min != 0 || f.Max != 0 || f.N != 0 || f.Cycles.Known()):
		return errors.New("it is unknown and has values")
	case !known:
		return nil
	case f.N < 1:
		return fmt.Errorf("it is of %d repeats", f.N)
	case f.Min > median || median > f.Max:
		return fmt.Errorf("median %g is outside %g to %g", median, f.Min, f.Max)
	}
	return nil
}
