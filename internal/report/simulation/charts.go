// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// armPanels are bars of figures of whole runs.
func (v scenarioView) armPanels() []panel {
	var out []panel
	for i, sub := range []string{"Share of the DRAM reads of all workloads; more is better.", "Instance-time that was not bound, of approved workloads (as in MAO, Fig. 6)."} {
		m := v.armFigures()[i]
		b := bars{print: render.Ratio, axis: render.Short, top: 1}
		g := barGroup{}
		t := render.Grid{Heads: []string{"arm", m.title}, Keys: 1}
		for k, a := range v.Arms {
			s := m.Over(a, "")
			g.rows = append(g.rows, barRow{name: a.Name, style: v.style(k), value: s.Median, low: s.Min, high: s.Max, known: s.N > 0})
			t.Rows = append(t.Rows, append(render.Cells(a.Name), cellOf(s, m.print)))
		}
		b.groups = append(b.groups, g)
		out = append(out, b.panel("arms-"+m.Name, title(m.title), sub, t))
	}
	return out
}

// changePanels are the services' latency and CPU relative to the reference arm (as in MAO,
// Fig. 8).
func (v scenarioView) changePanels() (out []panel) {
	for _, m := range []figure{v.figureNamed(scenario.Latency), v.figureNamed(scenario.CPUPerOp)} {
		b := bars{print: render.Change, axis: shortChange}
		t := render.Grid{Heads: []string{"service", "arm", "change", "paper"}, Keys: 2}
		for _, name := range v.services {
			g := barGroup{name: name}
			for i, a := range v.Arms {
				if i == v.base {
					continue
				}
				r := v.changeRow(name, m, i)
				g.rows = append(g.rows, r)
				s := m.Against(a, v.Arms[v.base], name).Change()
				t.Rows = append(t.Rows, append(render.Cells(name, a.Name), of(s, pairs(a, v.Arms[v.base]), changeCell(s)), paperCell(r)))
			}
			b.groups = append(b.groups, g)
		}
		sub := "Change, seed by seed; to the left is better."
		if b.marked() {
			sub += " A diamond is the paper's figure."
		} else {
			t = first(3, t)
		}
		if !b.empty() {
			out = append(out, b.panel("change-"+m.Name, title(m.title)+" against "+v.Arms[v.base].Name, sub, t))
		}
	}
	return out
}

func (v scenarioView) changeRow(name string, m figure, arm int) barRow {
	s := m.Against(v.Arms[arm], v.Arms[v.base], name).Change()
	r := barRow{name: v.Arms[arm].Name, style: v.style(arm), value: s.Median, low: s.Min, high: s.Max, known: s.N > 0}
	for _, c := range v.claims {
		paper, ok := c.Value.Get()
		if ok && c.Service == name && c.Metric == m.Name && v.arm(c.Arm) == arm && !c.Absolute() && v.arm(c.Against) == v.base {
			r.mark, r.marked = paper, true
		}
	}
	return r
}

func changeCell(s scenario.Spread) render.Cell {
	if s.N == 0 {
		return render.Cell{Text: none}
	}
	return render.Cell{Text: render.Change(s.Median), Small: changeRange(s)}
}

func paperCell(r barRow) render.Cell {
	if !r.marked {
		return render.Cell{}
	}
	return render.Cell{Text: render.Change(r.mark)}
}

// moment is one figure of a sample; there is no latency without requests.
type moment struct {
	id, title, sub string
	of             func(scenario.Sample) (float64, bool)
	share          bool
}

var moments = []moment{
	{"load", "Load", "CPUs in use of all.", func(s scenario.Sample) (float64, bool) { return s.Load, true }, true},
	{"latency", "Latency", "Mean of all requests.", func(s scenario.Sample) (float64, bool) { return above(s.LatencyS) }, false},
	{"local", "Local ratio", "Of the DRAM reads of all workloads.", func(s scenario.Sample) (float64, bool) { return s.LocalRatio, true }, true},
	{"unbound", "Unbound share", "Of approved workloads, those that are not bound (as in MAO, Fig. 6).", func(s scenario.Sample) (float64, bool) { return s.Unbound, true }, true},
}

// timePanels have a line for each arm: the median of its seeds, in a band from the lowest
// to the highest.
func (v scenarioView) timePanels() (out []panel) {
	for _, m := range moments {
		lines := v.timeLines(m)
		unit := unitOf{"", 1}
		if !m.share {
			unit = largest(lines)
		}
		p := render.Plot{Wide: barsWide, X: hours(lines), Y: render.Axis{Label: unit.name}, Lines: rescaled(lines, unit.scale)}
		if m.share {
			p.Y.High = 1
		}
		if p.Empty() {
			continue
		}
		out = append(out, panel{p.Panel("time-"+m.id, m.title, m.sub), timeTable(p.Lines, unit.name)})
	}
	return out
}

// lineOf is an arm's line.
func (v scenarioView) lineOf(arm int) render.Line {
	style := v.style(arm)
	return render.Line{Name: v.Arms[arm].Name, Class: styleOf(style), Shape: style, Joined: true}
}

func (v scenarioView) timeLines(m moment) (lines []render.Line) {
	for i, a := range v.Arms {
		l := v.lineOf(i)
		l.Banded = true
		for k := 0; ; k++ {
			pt, ok := momentOf(a, k, m)
			if !ok {
				break
			}
			l.Points = append(l.Points, pt)
		}
		lines = append(lines, l)
	}
	return lines
}

// momentOf is the k-th sample over the seeds; false: there is none.
func momentOf(a scenario.Outcome, k int, m moment) (render.Point, bool) {
	var values []float64
	hour, ok := 0.0, false
	for _, r := range a.Runs {
		if k >= len(r.Series) {
			continue
		}
		hour, ok = r.Series[k].Hour, true
		if v, known := m.of(r.Series[k]); known {
			values = append(values, v)
		}
	}
	s := scenario.SpreadOf(values)
	if s.N == 0 {
		return render.Point{X: render.Exactly(hour), Y: render.Exactly(math.NaN())}, ok
	}
	return render.Point{X: render.Exactly(hour), Y: extent(s)}, ok
}

func extent(s scenario.Spread) render.Extent {
	return render.Extent{Mid: s.Median, Low: s.Min, High: s.Max}
}

// largest is the unit of the largest figure, used for the whole picture.
func largest(lines []render.Line) unitOf {
	top := 0.0
	for _, l := range lines {
		for _, pt := range l.Points {
			if !math.IsNaN(pt.Y.Mid) {
				top = max(top, pt.Y.High)
			}
		}
	}
	for _, u := range spans {
		if top >= u.scale {
			return u
		}
	}
	return spans[len(spans)-1]
}

func rescaled(lines []render.Line, scale float64) []render.Line {
	for _, l := range lines {
		for i, pt := range l.Points {
			l.Points[i].Y = render.Extent{Mid: pt.Y.Mid / scale, Low: pt.Y.Low / scale, High: pt.Y.High / scale}
		}
	}
	return lines
}

// hours is the time axis, in whole days where there are many.
func hours(lines []render.Line) render.Axis {
	x := render.Axis{Label: "hours since the start", High: 1e-6}
	for _, l := range lines {
		for _, pt := range l.Points {
			x.High = max(x.High, pt.X.Mid)
		}
	}
	const ticks = 8
	for _, x.Step = range []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168} {
		if x.High/x.Step <= ticks {
			return x
		}
	}
	x.Step = x.High / ticks
	return x
}

// mostRows bounds the rows of a table to about a page: further samples are combined.
const mostRows = 24

func timeTable(lines []render.Line, unit string) render.Grid {
	t := render.Grid{Heads: []string{"until hour"}, Keys: 1}
	n := 0
	for _, l := range lines {
		head := l.Name
		if unit != "" {
			head += ", " + unit
		}
		t.Heads = append(t.Heads, head)
		n = max(n, len(l.Points))
	}
	per := max(1, (n+mostRows-1)/mostRows)
	for from := 0; from < n; from += per {
		row := render.Cells("")
		for _, l := range lines {
			text, hour := meanOf(l.Points[min(from, len(l.Points)):min(from+per, len(l.Points))])
			row = append(row, render.Cell{Text: text})
			if hour != "" {
				row[0].Text = hour
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func meanOf(points []render.Point) (text, hour string) {
	sum, n := 0.0, 0.0
	for _, pt := range points {
		if hour = render.Short(pt.X.Mid); !math.IsNaN(pt.Y.Mid) {
			sum, n = sum+pt.Y.Mid, n+1
		}
	}
	if n == 0 {
		return none, hour
	}
	return render.Number(sum / n), hour
}

// shortChange and shortPercent are for axes.
func shortChange(v float64) string {
	return render.Signed(v, shortPercent)
}

func shortPercent(v float64) string { return render.Short(v*100) + "%" }

func title(text string) string { return string(upper(text[0])) + text[1:] }

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}
