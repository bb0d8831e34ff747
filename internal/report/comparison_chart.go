// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// chart is horizontal bars, one for each arm. Every arm's name stands above its bar and the
// figure at the right, so nothing depends on colour or on the length of a name.
//
//	homenode                      0.954
//	████████████████████████├─•┤
type chart struct {
	entries []entry
	top     float64 // of the axis
	lines   []line  // to compare with: a target, the first arm
}

// Geometry, in CSS pixels: as wide as a phone.
const (
	chartWidth = 380.0
	chartLeft  = 2.0
	chartRight = 376.0
	rowHeight  = 38.0
	barTop     = 18.0 // below the row's top; the label is above
	barHeight  = 12.0
	axisRoom   = 24.0
	lineRoom   = 16.0 // above the first row, for the names of the lines
)

// entry is one arm's figure for a chart; its bar is the value divided by scaled.
type entry struct {
	arm    experiment.Arm
	value  float64
	known  bool
	spread experiment.Summary
	scaled float64
	text   string
	best   bool
}

func (e entry) at(v float64) float64 { return v / e.scaled }

// highest is the value that the axis has to reach.
func highest(entries []entry, top float64) float64 {
	for _, e := range entries {
		if !e.known {
			continue
		}
		top = max(top, e.at(e.value), e.at(e.spread.Max))
		for _, v := range e.spread.Values {
			top = max(top, e.at(v))
		}
	}
	return top
}

// newChart lays the entries out on an axis from 0 to at least top; lines are at
// values of the axis.
func newChart(id, title string, entries []entry, top float64, lines []line) render.Panel {
	c := chart{entries, highest(entries, top), lines}
	about := ""
	for _, e := range entries {
		about += e.arm.Title + ": " + e.text + ". "
	}
	return render.Panel{ID: id, Title: title, Sub: about, Wide: chartWidth, High: c.end() + axisRoom, Draw: c.draw}
}

// end is below the last bar.
func (c chart) end() float64 { return lineRoom + float64(len(c.entries))*rowHeight }

func (c chart) x(v float64) float64 {
	return chartLeft + max(0, v)/c.top*(chartRight-chartLeft)
}

type line struct {
	at   float64
	text string
}

func (c chart) draw(out *render.Canvas) {
	step := render.TickStep(c.top)
	for i := 0; float64(i)*step <= c.top*1.0001; i++ {
		x := c.x(float64(i) * step)
		out.Line(x, lineRoom, x, c.end(), "grid")
		out.Text(x, c.end()+14, "axis", anchorAt(x), render.Short(float64(i)*step))
	}
	c.lines = slices.DeleteFunc(slices.Clone(c.lines), func(l line) bool { return l.at > c.top })
	for _, l := range c.lines {
		out.Text(c.x(l.at), 10, "axis of", anchorAt(c.x(l.at)), l.text)
	}
	for i, e := range c.entries {
		c.drawBar(out, e, lineRoom+float64(i)*rowHeight)
	}
	for i, e := range c.entries {
		c.drawSpread(out, e, lineRoom+float64(i)*rowHeight+barTop)
	}
}

func anchorAt(x float64) string {
	switch {
	case x < chartWidth*0.1:
		return "start"
	case x > chartWidth*0.9:
		return "end"
	}
	return "middle"
}

// drawBar draws an arm's name, figure and bar.
func (c chart) drawBar(out *render.Canvas, e entry, y float64) {
	class, value := classOf(e.arm), e.text
	if e.best {
		value = "★ " + value
	}
	out.Text(chartLeft, y+barTop-5, "label "+class, "start", armRow{Title: e.arm.Title, Ceiling: e.arm.Name == ceiling}.label(min(36, 45-render.Width(e.text))))
	out.Text(chartWidth-chartLeft, y+barTop-5, "value "+class, "end", value)
	if e.known {
		out.Rect(chartLeft, y+barTop, c.x(e.at(e.value))-chartLeft, barHeight, "bar "+class, 2)
		return
	}
	mid := y + barTop + barHeight/2
	out.Line(chartLeft, mid, chartWidth-chartLeft, mid, "none")
}

// drawSpread draws over a bar what it is compared with, and the repeats.
func (c chart) drawSpread(out *render.Canvas, e entry, y float64) {
	for _, l := range c.lines {
		out.Line(c.x(l.at), y-3, c.x(l.at), y+barHeight+3, "mark")
	}
	mid := y + barHeight/2
	if e.known && e.spread.N > 1 {
		out.Path(render.Whisker(c.x(e.at(e.spread.Min)), c.x(e.at(e.spread.Max)), mid), "whisker")
	}
	for _, v := range e.spread.Values {
		if e.known {
			out.Circle(c.x(e.at(v)), mid, 2.5, "dot")
		}
	}
}

func classOf(a experiment.Arm) string {
	switch a.Name {
	case ours:
		return "ours"
	case ceiling:
		return "ceiling"
	}
	return "peer"
}

// localChart is the local access ratio by arm, with the target where there is one.
func localChart(c experiment.Comparison) render.Panel {
	cells := armRows(c.Arms, armColumns())
	var entries []entry
	for i, a := range c.Arms {
		v, ok := a.LocalAccessRatio.Get()
		e := entry{arm: a, value: v, known: ok && a.Applicable, spread: a.LocalSpread, scaled: 1}
		e.text, e.best = said(a, render.Show(a.LocalAccessRatio, render.Ratio)), a.Applicable && cells[i].Cells[0].Best
		entries = append(entries, e)
	}
	var lines []line
	if us, _ := c.Arm(ours); len(c.Targets) > 0 && c.Targets[0].Got == us.LocalAccessRatio && us.LocalAccessRatio.Known() {
		lines = append(lines, line{c.Targets[0].Limit, "target " + c.Targets[0].Want})
	}
	return newChart("local", "Local access ratio by arm", entries, 1, lines)
}

func said(a experiment.Arm, text string) string {
	if !a.Applicable {
		return notApplicable
	}
	return text
}

// relativeChart is a service's throughput relative to the first arm's, on an axis that
// reaches top.
func relativeChart(c experiment.Comparison, s experiment.Service, id string, top float64) (render.Panel, bool) {
	entries := relativeEntries(c, s)
	if len(entries) == 0 {
		return render.Panel{}, false
	}
	lines := []line{{1, c.Arms[0].Title}}
	return newChart(id, s.Name+": throughput relative to "+c.Arms[0].Title, entries, top, lines), true
}

// relativeTop gives all services' charts one axis, so that they can be compared by eye.
func relativeTop(c experiment.Comparison) float64 {
	top := 1.0
	for _, s := range services(c) {
		top = highest(relativeEntries(c, s), top)
	}
	return top
}

// relativeEntries is empty if the first arm has no figure.
func relativeEntries(c experiment.Comparison, s experiment.Service) []entry {
	base, ok := ops(c.Arms[0], s.Name)
	if !ok || base <= 0 {
		return nil
	}
	cells := armRows(c.Arms, serviceColumns(c, s.Name))
	var entries []entry
	for i, a := range c.Arms {
		of, _ := a.Service(s.Name)
		v, known := ops(a, s.Name)
		e := entry{arm: a, value: v, known: known, spread: of.Spread, scaled: base}
		e.text, e.best = said(a, render.Show(relative(c, a, s.Name), times)+" ×"), a.Applicable && cells[i].Cells[0].Best
		if a.Applicable && !known {
			e.text = unknown
		}
		entries = append(entries, e)
	}
	return entries
}

// cyclesChart is a service's cycles per operation; it has no spread.
func cyclesChart(c experiment.Comparison, s experiment.Service, id string) (render.Panel, bool) {
	const column = 3 // of serviceColumns
	cells := armRows(c.Arms, serviceColumns(c, s.Name))
	top := 0.0
	var entries []entry
	for i, a := range c.Arms {
		of, _ := a.Service(s.Name)
		v, known := of.CyclesPerOp.Get()
		e := entry{arm: a, value: v, known: known && a.Applicable, scaled: 1, text: said(a, render.Show(of.CyclesPerOp, figure))}
		e.best = a.Applicable && cells[i].Cells[column].Best
		if e.known {
			top = max(top, v)
		}
		entries = append(entries, e)
	}
	if top <= 0 {
		return render.Panel{}, false
	}
	return newChart(id, s.Name+": cycles per operation", entries, top, nil), true
}
