// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strconv"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// chart is horizontal bars, one for each arm, in units of the SVG's view box; the
// page's template draws it. Every arm's name stands above its bar and the figure at the
// right, so nothing depends on colour or on the length of a name.
//
//	homenode                      0.954
//	████████████████████████├─•┤
type chart struct {
	ID          string
	Title, Desc string
	Height      string
	Bars        []bar
	Ticks       []tick
	Lines       []tick // to compare with: a target, the first arm
	AxisY, EndY string
}

type bar struct {
	Label, Class     string
	Text             string // the figure, or why there is none
	Best, Known      bool
	LabelY, Y, Wide  string
	MidY             string
	Whisker          bool
	Low, High        string
	CapTop, CapEnd   string
	MarkTop, MarkEnd string
	Dots             []string
}

type tick struct{ X, Text, Anchor string }

// Geometry, in view box units: about CSS pixels on a phone.
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
func newChart(id, title string, entries []entry, top float64, lines []line) chart {
	c := chart{ID: id, Title: title}
	top = highest(entries, top)
	step := render.TickStep(top)
	x := func(v float64) float64 { return chartLeft + max(0, v)/top*(chartRight-chartLeft) }
	for i := 0; float64(i)*step <= top*1.0001; i++ {
		c.Ticks = append(c.Ticks, tickAt(x(float64(i)*step), render.Short(float64(i)*step)))
	}
	for _, l := range lines {
		if l.at <= top {
			c.Lines = append(c.Lines, tickAt(x(l.at), l.text))
		}
	}
	for i, e := range entries {
		c.Bars = append(c.Bars, newBar(e, lineRoom+float64(i)*rowHeight, x))
		c.Desc += e.arm.Title + ": " + e.text + ". "
	}
	end := lineRoom + float64(len(entries))*rowHeight
	c.EndY, c.AxisY, c.Height = number(end), number(end+14), number(end+axisRoom)
	return c
}

type line struct {
	at   float64
	text string
}

func tickAt(x float64, text string) tick {
	anchor := "middle"
	switch {
	case x < chartWidth*0.1:
		anchor = "start"
	case x > chartWidth*0.9:
		anchor = "end"
	}
	return tick{X: number(x), Text: text, Anchor: anchor}
}

func newBar(e entry, y float64, x func(float64) float64) bar {
	mid := y + barTop + barHeight/2
	b := bar{
		Label: armRow{Title: e.arm.Title, Ceiling: e.arm.Name == ceiling}.label(min(36, 45-render.Width(e.text))), Class: classOf(e.arm),
		Text: e.text, Best: e.best, Known: e.known, LabelY: number(y + barTop - 5), Y: number(y + barTop), MidY: number(mid),
		CapTop: number(mid - 4), CapEnd: number(mid + 4),
		MarkTop: number(y + barTop - 3), MarkEnd: number(y + barTop + barHeight + 3),
	}
	if !e.known {
		return b
	}
	b.Wide = number(x(e.at(e.value)) - chartLeft)
	if e.spread.N > 1 {
		b.Whisker, b.Low, b.High = true, number(x(e.at(e.spread.Min))), number(x(e.at(e.spread.Max)))
	}
	for _, v := range e.spread.Values {
		b.Dots = append(b.Dots, number(x(e.at(v))))
	}
	return b
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

func number(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// localChart is the local access ratio by arm, with the target where there is one.
func localChart(c experiment.Comparison) chart {
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
func relativeChart(c experiment.Comparison, s experiment.Service, id string, top float64) (chart, bool) {
	entries := relativeEntries(c, s)
	if len(entries) == 0 {
		return chart{}, false
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
func cyclesChart(c experiment.Comparison, s experiment.Service, id string) (chart, bool) {
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
		return chart{}, false
	}
	return newChart(id, s.Name+": cycles per operation", entries, top, nil), true
}
