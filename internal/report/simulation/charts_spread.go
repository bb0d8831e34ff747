// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"slices"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// Bins of load; half as wide where the load hardly changes.
const (
	binWide   = 0.10
	binNarrow = 0.05
	narrow    = 0.40
)

// gainPanel is the latency that an arm saves, by the reference arm's load (as in MAO, Fig.
// 4).
//
//  1. Samples of the same hour and seed are paired.
//  2. A pair's gain is 1 − latency / reference latency; its load is the reference's.
//  3. Each seed contributes the mean of its pairs in a bin; the median of the seeds is
//     shown.
func (v scenarioView) gainPanel() (panel, bool) {
	width := v.binWidth()
	p := render.Plot{Wide: barsWide, X: render.Axis{Label: "load: CPUs in use under " + v.Arms[v.base].Name, High: 1, Step: 0.2, Print: shortPercent}, Y: render.Axis{Label: "gain", Print: shortChange}}
	t := render.Grid{Heads: []string{"load", "arm", "gain", "samples"}, Keys: 2}
	for i, a := range v.Arms {
		if i == v.base {
			continue
		}
		l := v.lineOf(i)
		l.Marked = true
		for bin := 0; float64(bin)*width < 1; bin++ {
			s, n := gainIn(a, v.Arms[v.base], float64(bin)*width, width)
			if s.N == 0 {
				continue
			}
			from := float64(bin) * width
			l.Points = append(l.Points, render.Point{X: render.Exactly(from + width/2), Y: extent(s)})
			c := render.Cell{Text: render.Change(s.Median)}
			if s.N > 1 && s.Min < s.Max {
				c.Small = render.Change(s.Min) + " to " + render.Change(s.Max)
			}
			t.Rows = append(t.Rows, append(render.Cells(shortPercent(from)+"–"+shortPercent(from+width), a.Name), c, render.Cell{Text: render.Whole(float64(n))}))
		}
		p.Lines = append(p.Lines, l)
	}
	slices.SortStableFunc(t.Rows, func(a, b []render.Cell) int { return compareLength(a[0].Text, b[0].Text) })
	if p.Empty() {
		return panel{}, false
	}
	return panel{p.Panel("gain", "Latency saved, by load", "Samples of the same hour and seed, in bins of load; above 0 is better. The median of the seeds, lowest and highest."), t}, true
}

// compareLength puts "5%–10%" before "10%–15%".
func compareLength(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}

func (v scenarioView) binWidth() float64 {
	low, high := math.Inf(1), 0.0
	for _, r := range v.Arms[v.base].Runs {
		for _, s := range r.Series {
			low, high = min(low, s.Load), max(high, s.Load)
		}
	}
	if high-low < narrow {
		return binNarrow
	}
	return binWide
}

// gainIn is the gain in one bin; n is the number of samples.
func gainIn(a, base scenario.Outcome, from, width float64) (s scenario.Spread, n int) {
	var means []float64
	scenario.EachPair(a, base, func(r, b scenario.Run) {
		sum, here := 0.0, 0
		eachHour(r.Series, b.Series, func(x, y scenario.Sample) {
			in := y.Load >= from && (y.Load < from+width || from+width >= 1)
			if gain := 1 - x.LatencyS/y.LatencyS; in && x.LatencyS > 0 && y.LatencyS > 0 && !math.IsInf(gain, 0) {
				sum, here = sum+gain, here+1
			}
		})
		if here > 0 {
			means, n = append(means, sum/float64(here)), n+here
		}
	})
	return scenario.SpreadOf(means), n
}

// eachHour calls f with the samples of two series that have the same time.
func eachHour(a, b []scenario.Sample, f func(a, b scenario.Sample)) {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch {
		case a[i].Hour < b[k].Hour:
			i++
		case a[i].Hour > b[k].Hour:
			k++
		default:
			f(a[i], b[k])
			i, k = i+1, k+1
		}
	}
}

// spreadPanel is how local ratio is distributed over workloads (as in MAO, Fig. 9).
func (v scenarioView) spreadPanel() (panel, bool) {
	p := render.Plot{Wide: barsWide, X: render.Axis{Label: "local ratio", High: 1, Step: 0.2}, Y: render.Axis{Label: "workloads with at most that", High: 1, Print: shortPercent}}
	t := render.Grid{Heads: []string{"arm", "10th\npercentile", "25th", "median", "75th", "90th"}, Keys: 1}
	for i, a := range v.Arms {
		all := localRatios(a)
		if len(all) == 0 {
			continue
		}
		l := v.lineOf(i)
		l.Steps, l.Points = true, []render.Point{{X: render.Exactly(all[0])}}
		for k, x := range all {
			y := float64(k+1) / float64(len(all))
			l.Points = append(l.Points, render.Point{X: render.Exactly(x), Y: render.Exactly(y)})
		}
		p.Lines = append(p.Lines, l)
		row := render.Cells(a.Name)
		for _, q := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
			row = append(row, render.Cell{Text: render.Ratio(quantile(all, q))})
		}
		t.Rows = append(t.Rows, row)
	}
	if p.Empty() {
		return panel{}, false
	}
	return panel{p.Panel("spread", "Local ratio over workloads", "All workloads of all seeds: the further to the right, the more local."), t}, true
}

func localRatios(a scenario.Outcome) (all []float64) {
	for _, r := range a.Runs {
		for _, w := range r.Workloads {
			all = append(all, w.LocalRatio)
		}
	}
	slices.Sort(all)
	return all
}

// quantile is the value that a share of them does not exceed (nearest rank).
func quantile(sorted []float64, share float64) float64 {
	at := int(math.Ceil(share*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// clear is the least change of local ratio that counts; less is noise of the demand.
const clear = 0.005

// gainTable is how much the local ratio of workloads grows (as in MAO, Fig. 9).
func (v scenarioView) gainTable() (t render.Grid, ok bool) {
	t = render.Grid{Caption: "Gain of local ratio over " + v.Arms[v.base].Name + ", workload by workload, of all seeds", Keys: 1,
		Heads: []string{"arm", "median, lowest to highest", "workloads that are more local", "less local"}}
	for i, a := range v.Arms {
		if cells := v.gains(i); i != v.base && len(cells) > 0 {
			t.Rows, ok = append(t.Rows, append(render.Cells(a.Name), cells...)), true
		}
	}
	return t, ok
}

// gains are compared with workloads of the same name and seed under the reference arm;
// there are none if there are no such workloads.
func (v scenarioView) gains(arm int) []render.Cell {
	var all []float64
	more, less := 0, 0
	scenario.EachPair(v.Arms[arm], v.Arms[v.base], func(r, b scenario.Run) {
		for _, w := range r.Workloads {
			i := slices.IndexFunc(b.Workloads, func(x scenario.Workload) bool { return x.ID == w.ID })
			if i < 0 {
				continue
			}
			gain := w.LocalRatio - b.Workloads[i].LocalRatio
			all = append(all, gain)
			if gain > clear {
				more++
			} else if gain < -clear {
				less++
			}
		}
	})
	if len(all) == 0 {
		return nil
	}
	s := scenario.SpreadOf(all)
	n := float64(len(all))
	return []render.Cell{{Text: signed(s.Median), Small: signed(s.Min) + " to " + signed(s.Max)}, {Text: render.Percent(float64(more) / n)}, {Text: render.Percent(float64(less) / n)}}
}

func signed(v float64) string { return render.Signed(v, render.Ratio) }
