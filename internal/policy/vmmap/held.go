// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// Bounds are the least and the most that a workload may hold of one cache, as shares of its
// size. Where occupancy is not counted (resctrl's llc_occupancy), the lines that all
// workloads bring in bound it. A line that is brought in evicts a line of any workload, in
// proportion to what each holds there. So each fill adds to the workload that brings it in,
// and takes from all.
//
// The bounds begin at 0 and 1. After a while they are as close as e^-(lines brought in /
// the cache's size). Two errors remain: lines brought in by workloads in no window are not
// counted, so the least is too high; and lines count for the caches where threads are at
// the window's end, so both may be off.
type Bounds struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// anything are the bounds before any window.
var anything = Bounds{0, 1}

// after returns the bounds after this much was brought in, by itself and by others, as
// shares of the cache's size.
func (b Bounds) after(own, others float64) Bounds {
	all := own + others
	if !(all > 0) {
		return b
	}
	stays := decay(all)
	one := func(held float64) float64 { return float64(held*stays) + float64(own/all*(1-stays)) }
	return Bounds{one(b.Low), one(b.High)}
}

// decay is e^-x for x ≥ 0, to six digits below 10, with operations that every CPU rounds
// alike: (1 + x/2^20)^-2^20.
func decay(x float64) float64 {
	v := 1 / (1 + float64(x/(1<<20)))
	for range 20 {
		v *= v
	}
	return v
}

// lineBytes is what a read from memory brings in.
const lineBytes = 64

// fills is what each workload, and all together, brought into each last-level cache in a
// window, as shares of its size.
type fills struct {
	of  [][]float64 // by workload, by cache; nil: unknown
	all []float64   // by cache; NaN: one workload's is unknown
}

// linesOf is the lines that it brought in. Reads for writing are among the misses, and not
// among the loads.
func linesOf(w *window.Workload) (lines float64, ok bool) {
	loads, ok := w.Loads()
	misses, ok2 := w.LLCMisses.Get()
	return max(loads, float64(misses)), ok || ok2
}

// fillsOf assumes that a workload's fills spread over caches like its time.
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

// bound updates what workload i may hold of each cache. In a cache that it has just come
// to, or shares with an uncounted workload, it may hold anything.
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

// here returns the bounds of what it holds of a cache where it runs, weighted by its time
// there.
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

// bounded is a sample with bounds of its occupancy, where that was not counted.
func (s Sample) bounded(b Bounds) Sample {
	if size, ok := s.Cache.Get(); ok && !s.Held.Known() {
		s.Low, s.High = unit.Some(b.Low*size), unit.Some(b.High*size)
	}
	return s
}
