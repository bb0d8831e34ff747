// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

func (b bars) panel(id, title, sub string, t table) panel {
	return panel{ID: id, Title: title, Sub: sub, Table: t, high: b.height(), draw: b.draw}
}

func (p *plot) panel(id, title, sub string, t table) panel {
	return panel{ID: id, Title: title, Sub: sub, Table: t, high: p.height(), draw: p.draw}
}

// armPanels are bars of figures of whole runs.
func (v scenarioView) armPanels() []panel {
	var out []panel
	for i, sub := range []string{"Share of the DRAM reads of all workloads; more is better.", "Instance-time that was not bound, of approved workloads (as in MAO, Fig. 6)."} {
		m := v.armFigures()[i]
		b := bars{print: render.Ratio, axis: short, top: 1}
		g := barGroup{}
		t := table{Heads: []string{"arm", m.title}, Keys: 1}
		for k, a := range v.Arms {
			s := m.Over(a, "")
			g.rows = append(g.rows, barRow{name: a.Name, style: v.style(k), value: s.Median, low: s.Min, high: s.Max, known: s.N > 0})
			t.Rows = append(t.Rows, append(words(a.Name), cellOf(s, m.print)))
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
		t := table{Heads: []string{"service", "arm", "change", "paper"}, Keys: 2}
		for _, name := range v.services {
			g := barGroup{name: name}
			for i, a := range v.Arms {
				if i == v.base {
					continue
				}
				r := v.changeRow(name, m, i)
				g.rows = append(g.rows, r)
				s := m.Against(a, v.Arms[v.base], name).Change()
				t.Rows = append(t.Rows, append(words(name, a.Name), changeCell(s).of(s, pairs(a, v.Arms[v.base])), paperCell(r)))
			}
			b.groups = append(b.groups, g)
		}
		sub := "Change, seed by seed; to the left is better."
		if b.marked() {
			sub += " A diamond is the paper's figure."
		} else {
			t = t.first(3)
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

func changeCell(s scenario.Spread) scenarioCell {
	if s.N == 0 {
		return scenarioCell{Text: none}
	}
	return scenarioCell{Text: render.Change(s.Median), Range: changeRange(s)}
}

func paperCell(r barRow) scenarioCell {
	if !r.marked {
		return scenarioCell{}
	}
	return scenarioCell{Text: render.Change(r.mark)}
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
		p := plot{xLabel: "hours since the start", yLabel: unit.name, xText: short, yText: short, lines: rescaled(lines, unit.scale)}
		if m.share {
			p.y1 = 1
		}
		if p.empty() {
			continue
		}
		p.hours()
		out = append(out, p.panel("time-"+m.id, m.title, m.sub, timeTable(p.lines, unit.name)))
	}
	return out
}

func (v scenarioView) timeLines(m moment) (lines []line) {
	for i, a := range v.Arms {
		l := line{name: a.Name, style: v.style(i)}
		for k := 0; ; k++ {
			pt, ok := momentOf(a, k, m)
			if !ok {
				break
			}
			l.points = append(l.points, pt)
		}
		lines = append(lines, l)
	}
	return lines
}

// momentOf is the k-th sample over the seeds; false: there is none.
func momentOf(a scenario.Outcome, k int, m moment) (point, bool) {
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
		return point{x: hour, y: math.NaN()}, ok
	}
	return point{hour, s.Median, s.Min, s.Max}, ok
}

// largest is the unit of the largest figure, used for the whole picture.
func largest(lines []line) unitOf {
	top := 0.0
	for _, l := range lines {
		for _, pt := range l.points {
			if !math.IsNaN(pt.y) {
				top = max(top, pt.high)
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

func rescaled(lines []line, scale float64) []line {
	for _, l := range lines {
		for i, pt := range l.points {
			l.points[i] = point{pt.x, pt.y / scale, pt.low / scale, pt.high / scale}
		}
	}
	return lines
}

// hours sets the x axis, in whole days where there are many.
func (p *plot) hours() {
	p.x0, p.x1 = 0, 1e-6
	for _, l := range p.lines {
		for _, pt := range l.points {
			p.x1 = max(p.x1, pt.x)
		}
	}
	const ticks = 8
	for _, p.xStep = range []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168} {
		if p.x1/p.xStep <= ticks {
			return
		}
	}
	p.xStep = p.x1 / ticks
}

// mostRows bounds the rows of a table to about a page: further samples are combined.
const mostRows = 24

func timeTable(lines []line, unit string) table {
	t := table{Heads: []string{"until hour"}, Keys: 1}
	n := 0
	for _, l := range lines {
		head := l.name
		if unit != "" {
			head += ", " + unit
		}
		t.Heads = append(t.Heads, head)
		n = max(n, len(l.points))
	}
	per := max(1, (n+mostRows-1)/mostRows)
	for from := 0; from < n; from += per {
		row := words("")
		for _, l := range lines {
			text, hour := meanOf(l.points[min(from, len(l.points)):min(from+per, len(l.points))])
			row = append(row, scenarioCell{Text: text})
			if hour != "" {
				row[0].Text = hour
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func meanOf(points []point) (text, hour string) {
	sum, n := 0.0, 0.0
	for _, pt := range points {
		if hour = short(pt.x); !math.IsNaN(pt.y) {
			sum, n = sum+pt.y, n+1
		}
	}
	if n == 0 {
		return none, hour
	}
	return render.Number(sum / n), hour
}

// short formats a figure of an axis.
func short(v float64) string {
	if math.Abs(v) < 1e-9 {
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func shortChange(v float64) string {
	text := short(math.Abs(v)*100) + "%"
	switch {
	case math.Abs(v) < 1e-9:
		return "0"
	case v < 0:
		return "−" + text
	}
	return "+" + text
}

func shortPercent(v float64) string { return short(v*100) + "%" }

func title(text string) string { return string(upper(text[0])) + text[1:] }

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - 'a' + 'A'
	}
	return b
}
