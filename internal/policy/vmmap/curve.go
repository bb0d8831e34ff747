// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"math"
	"slices"
)

// Point is one observation of a program's response to cache: the share of its requests that
// hit while it held this much. It is a mean over windows with occupancies within a factor
// of two; the last windows weigh most.
type Point struct {
	Held    float64 `json:"held"` // share of a cache's size
	Hits    float64 `json:"hits"` // share of requests
	Windows int     `json:"windows"`
}

// Curve is a list of points, ascending by occupancy, at most one for each halving of it.
// More occupancy never has fewer hits.
type Curve []Point

// octaves is the number of halvings of a cache that are distinguished.
const octaves = 6

// octave is the halving that a share of a cache is in; 0: more than half.
func octave(held float64) int {
	_, exp := math.Frexp(held)
	return min(octaves-1, max(0, -exp))
}

// certainShare is the largest difference of bounds, as a share of a cache's size, at which
// the occupancy counts as known.
const certainShare = 0.1

// withWindow returns the curve with one more window, as a new slice:
//
//  1. The window is added to the point of its halving.
//  2. More cache never hits less. A point that contradicts this one by more than chance
//     describes an earlier behaviour, and is dropped. One that contradicts it by less takes
//     this one's hits.
func (c Curve) withWindow(now Sample, weight float64) Curve {
	held, ok := now.share()
	a, ok2 := now.Requests.Get()
	loads, ok3 := now.Loads.Get()
	if !ok || !ok2 || !ok3 || a <= 0 || held <= 0 {
		return c
	}
	p := Point{held, 1 - loads/max(a, loads), 1}
	at, found := slices.BinarySearchFunc(c, p, func(q, p Point) int { return cmp.Compare(octave(p.Held), octave(q.Held)) })
	if !found {
		c = slices.Insert(slices.Clone(c), at, p)
	} else {
		c = slices.Clone(c)
		q := &c[at] // 1
		w := max(weight, 1/float64(q.Windows+1))
		q.Held += float64(w * (p.Held - q.Held))
		q.Hits += float64(w * (p.Hits - q.Hits))
		q.Windows++
	}
	is := c[at]                    // 2
	off := func(q Point) float64 { // hits: too many in a point below, too few in one above
		if q.Held < is.Held {
			return q.Hits - is.Hits
		}
		return is.Hits - q.Hits
	}
	c = slices.DeleteFunc(c, func(q Point) bool { return off(q) > chance })
	for i := range c {
		if d := off(c[i]); d > 0 {
			c[i].Hits = is.Hits
		}
	}
	return c
}

// chance is how far the hits of two points may contradict each other while both count.
const chance = 0.05

// tells reports that the response is known: from a least occupancy and twice as much, with
// some windows each.
func (c Curve) tells() bool {
	c = slices.DeleteFunc(slices.Clone(c), func(p Point) bool { return p.Windows < seenOften })
	return len(c) > 1 && c[len(c)-1].Held >= 2*c[0].Held
}

// Squeezed reports that the program was seen with little and with much of a cache, so that
// its response to cache is known.
func (s Sample) Squeezed() bool { return s.Curve.tells() }

// seenOften is the number of windows that a point needs before it counts for that.
const seenOften = 2

// share is the share of a cache that a window's workload holds, where that is known well
// enough.
func (s Sample) share() (float64, bool) {
	size, ok := s.Cache.Get()
	if !ok || size <= 0 {
		return 0, false
	}
	if held, ok := s.Held.Get(); ok {
		return held / size, true
	}
	low, ok := s.Low.Get()
	high, ok2 := s.High.Get()
	return (low + high) / 2 / size, ok && ok2 && high-low <= float64(certainShare*size)
}

// at is the share of requests that hit at an occupancy. Between two points it is on the
// line between them. Above all points it is on the line of the last two, until all hit.
// Below all points it is in proportion to the occupancy. A program that keeps what it uses
// most has more hits than that between and below points, and no more above.
func (c Curve) at(held float64) float64 {
	i := slices.IndexFunc(c, func(p Point) bool { return p.Held >= held })
	switch {
	case i > 0:
		a := c[i-1]
		return a.Hits + float64(c.slope(i)*(held-a.Held))
	case i == 0:
		return c[0].Hits * held / max(c[0].Held, least)
	}
	top := len(c) - 1
	return min(1, c[top].Hits+float64(c.slope(top)*(held-c[top].Held)))
}

// slope is the hits for a whole cache, on the line that ends at point i.
func (c Curve) slope(i int) float64 {
	if i == 0 {
		return c[0].Hits / max(c[0].Held, least)
	}
	return (c[i].Hits - c[i-1].Hits) / max(c[i].Held-c[i-1].Held, least)
}

// whole is the share of a cache, which may exceed 1, from which on all requests hit.
func (c Curve) whole() float64 {
	top := c[len(c)-1]
	if slope := c.slope(len(c) - 1); slope > 0 {
		return top.Held + (1-top.Hits)/slope
	}
	return math.Inf(1)
}
