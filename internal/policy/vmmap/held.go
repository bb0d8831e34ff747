// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Bounds are the least and the most that a workload may hold of one cache, as shares of
// its size. Where that is not counted (resctrl's llc_occupancy), what all bring in
// bounds it: what is brought in pushes out lines of any, in proportion to what each
// holds there. So each fill adds to the one that brings it, and takes from all.
//
// 0 and 1 at first, they are as close together after a while as e^-(what was brought in /
// the cache's size). What is brought in by workloads in no window is not seen, and what is
// counts for the caches where threads are at the window's end: the least is too much by
// the one, and both may be off by the other.
type Bounds struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// anything is what is known at first.
var anything = Bounds{0, 1}

// after so much was brought in, by itself and by others, as shares of the cache's size.
func (b Bounds) after(own, others float64) Bounds {
	all := own + others
	if !(all > 0) {
		return b
	}
	stays := decay(all)
	one := func(held float64) float64 { return float64(held*stays) + float64(own/all*(1-stays)) }
	return Bounds{one(b.Low), one(b.High)}
}

// decay is e^-x for x ≥ 0, to six digits below 10, by what every CPU rounds alike:
// (1 + x/2^20)^-2^20.
func decay(x float64) float64 {
	v := 1 / (1 + float64(x/(1<<20)))
	for range 20 {
		v *= v
	}
	return v
}

// lineBytes is what a read from memory brings in.
const lineBytes = 64

// fills is what each workload brought into each last-level cache in a window, and all
// together, as shares of its size.
type fills struct {
	of  [][]float64 // by workload, by cache; nil: not known
	all []float64   // by cache; NaN: that of one is not known
}

// linesOf are the lines that it brought in: reads for writing are among the misses, and
// not among the loads.
func linesOf(w *window.Workload) (lines float64, ok bool) {
	loads, ok := w.Loads()
	misses, ok2 := w.LLCMisses.Get()
	return max(loads, float64(misses)), ok || ok2
}

// fillsOf takes what a workload brings in as spread over caches like its time.
func (r *round) fillsOf(sites []Site) fills {
	f := fills{of: make([][]float64, len(sites)), all: make([]float64, len(r.m.LLCs))}
	for i, at := range sites {
		wl := &r.w.Workloads[i]
		lines, ok := linesOf(wl)
		if ok && len(at.Shares) > 0 {
			f.of[i] = make([]float64, len(at.Shares))
		}
		for k := range f.all {
			size := float64(r.m.LLCs[k].Size.Or(0))
			switch {
			case f.of[i] != nil && at.Shares[k] == 0:
			case f.of[i] != nil && size > 0:
				f.of[i][k] = float64(lines*lineBytes*at.Shares[k]) / size
				f.all[k] += f.of[i][k]
			case wl.CPU.Or(1) > 0 && !(ok && lines == 0):
				f.all[k] = math.NaN() // it may have been anywhere
			}
		}
	}
	return f
}

// bound is what i may hold of each cache now. In one that it has just come to, or shares
// with a workload that is not counted, it may hold anything.
func (l *Look) bound(at Site, i int, f fills) {
	was := l.Bounds
	if l.Bounds = nil; len(at.Shares) > 0 {
		l.Bounds = make([]Bounds, len(at.Shares))
	}
	for k, share := range at.Shares {
		l.Bounds[k] = anything
		if share == 0 || f.of[i] == nil || math.IsNaN(f.all[k]) {
			continue
		}
		if k < len(was) {
			l.Bounds[k] = was[k]
		}
		l.Bounds[k] = l.Bounds[k].after(f.of[i][k], f.all[k]-f.of[i][k])
	}
}

// here are the bounds of what it holds of a cache where it runs, by its time there.
func (l *Look) here(at Site) Bounds {
	if len(at.Shares) == 0 {
		return anything
	}
	var b Bounds
	for k, share := range at.Shares {
		b.Low += float64(share * l.Bounds[k].Low)
		b.High += float64(share * l.Bounds[k].High)
	}
	return b
}

// bounded is a sample with what it may hold, where that was not counted.
func (s Sample) bounded(b Bounds) Sample {
	if size, ok := s.Cache.Get(); ok && !s.Held.Known() {
		s.Low, s.High = unit.Some(b.Low*size), unit.Some(b.High*size)
	}
	return s
}

// judged are its slowdowns, what follows, and how sure the class is. Where only bounds of
// what it holds are known, class and sensitivity are said only if they are the same all the
// way between them; the slowdowns are of the middle.
func (f Infer) judged(s Sample) Verdict {
	v := f.judge(s)
	low, ok := s.Low.Get()
	high, ok2 := s.High.Get()
	if v.Class != Unknown || s.Held.Known() || !ok || !ok2 {
		return v
	}
	const parts = 4
	var all [parts + 1]Verdict
	for k := range all {
		s.Held = unit.Some(low + float64(float64(k)/parts*(high-low)))
		all[k] = f.judge(s)
	}
	between := all[parts/2]
	for _, is := range all {
		if is.Class != between.Class || is.Class == Unknown {
			return v
		}
		if is.Sensitive != all[0].Sensitive {
			between.Sensitive = unit.None[bool]()
		}
		between.Certain = unit.Some(min(between.Certain.Or(0), is.Certain.Or(0)))
	}
	return between
}
