// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"math"
	"slices"
)

// Point is what was seen of a program's response to cache: the share of its requests that
// hit while it held so much of one. Means over windows, the last ones weighing most, of
// occupancies within a factor of two.
type Point struct {
	Held    float64 `json:"held"` // of a cache's size
	Hits    float64 `json:"hits"` // of requests
	Windows int     `json:"windows"`
}

// Curve are points, ascending by what was held, at most one for each halving of it, with
// no fewer hits where more is held.
type Curve []Point

// octaves are how many halvings of a cache are told apart.
const octaves = 6

// octave is which halving a share of a cache is in; 0: more than half.
func octave(held float64) int {
	_, exp := math.Frexp(held)
	return min(octaves-1, max(0, -exp))
}

// certainShare is by how much of a cache's size bounds may differ for what is held to
// count as known.
const certainShare = 0.1

// withWindow is the curve with one more window, a new slice:
//
//  1. The point of its halving takes it in.
//  2. More of a cache never hits less. A point that says otherwise of this one, by more
//     than chance, is of how the program was, and forgotten; by less, it takes this one's.
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
	off := func(q Point) float64 { // hits that it has too many below, too few above
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

// chance is by how much hits of two points may differ the wrong way round, and both count.
const chance = 0.05

// tells says that the response was seen: with twice as much of the cache as at the least,
// and in some windows each.
func (c Curve) tells() bool {
	c = slices.DeleteFunc(slices.Clone(c), func(p Point) bool { return p.Windows < seenOften })
	return len(c) > 1 && c[len(c)-1].Held >= 2*c[0].Held
}

// seenOften is in how many windows a point must have been seen to say that the response was.
const seenOften = 2

// share of a cache that a window's workload holds, where that is known well enough.
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

// at is the share of requests that hit while it holds so much: between two points on the
// line between them, above all on that of the last two, as far as there are hits to have;
// below all in proportion to what is held. A program that keeps what it asks for most has
// more hits than that between and below points, and no more above.
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

// slope is hits for a whole cache, of the line that ends at point i.
func (c Curve) slope(i int) float64 {
	if i == 0 {
		return c[0].Hits / max(c[0].Held, least)
	}
	return (c[i].Hits - c[i-1].Hits) / max(c[i].Held-c[i-1].Held, least)
}

// whole is the share of a cache, 1 and more too, from where on all hits.
func (c Curve) whole() float64 {
	top := c[len(c)-1]
	if slope := c.slope(len(c) - 1); slope > 0 {
		return top.Held + (1-top.Hits)/slope
	}
	return math.Inf(1)
}
