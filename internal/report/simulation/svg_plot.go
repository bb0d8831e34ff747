// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"strings"

	"homenode/internal/render"
)

// plot is lines over two linear axes.
type plot struct {
	xLabel, yLabel string
	x0, x1         float64
	xStep          float64
	y0, y1         float64 // least extent of the axis
	xText, yText   func(float64) string
	lines          []line
}

// line is an arm. It is broken where a point is unknown (NaN).
type line struct {
	name   string
	style  int
	steps  bool // drawn in steps, as a distribution
	marks  bool
	points []point
}

// point has the extremes of the seeds.
type point struct{ x, y, low, high float64 }

// Geometry of a plot.
const (
	plotLeft  = 50.0
	plotRight = 20.0
	plotTop   = 20.0
	plotHigh  = 180.0
	plotFoot  = 36.0
	nameRow   = 16.0
)

func (p *plot) empty() bool {
	for _, l := range p.lines {
		for _, pt := range l.points {
			if !math.IsNaN(pt.y) {
				return false
			}
		}
	}
	return true
}

// places puts the names of the lines in rows below the plot.
func (p *plot) places() (at []render.LegendEntry, rows int) {
	return render.Legend(render.Each(p.lines, func(l line) string { return l.name }), plotLeft, barsWide)
}

func (p *plot) height() float64 {
	_, rows := p.places()
	return plotTop + plotHigh + plotFoot + float64(rows)*nameRow
}

// reach is the extent of the y axis.
func (p *plot) reach() (low, high float64) {
	low, high = p.y0, p.y1
	for _, l := range p.lines {
		for _, pt := range l.points {
			if !math.IsNaN(pt.y) {
				low, high = min(low, pt.low), max(high, pt.high)
			}
		}
	}
	if high-low < 1e-12 {
		high = low + 1
	}
	if high > p.y1 {
		high += 0.04 * (high - low)
	}
	if low < p.y0 {
		low -= 0.04 * (high - low)
	}
	return low, high
}

// frame maps figures to positions in the picture.
type frame struct{ x, y func(float64) float64 }

func (p *plot) draw(c *canvas) {
	low, high := p.reach()
	right, end := barsWide-plotRight, plotTop+plotHigh
	f := frame{
		x: func(v float64) float64 { return plotLeft + float64((v-p.x0)/(p.x1-p.x0)*(right-plotLeft)) },
		y: func(v float64) float64 { return end - float64((v-low)/(high-low)*plotHigh) },
	}
	step := render.TickStep(high - low)
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		class := "grid"
		if i == 0 {
			class = "base"
		}
		c.Line(plotLeft, f.y(i*step), right, f.y(i*step), class)
		c.Text(plotLeft-6, f.y(i*step)+4, "axis", "end", p.yText(i*step))
	}
	for i := math.Ceil(p.x0/p.xStep - 1e-9); i*p.xStep <= p.x1+1e-9*p.xStep; i++ {
		c.Line(f.x(i*p.xStep), end, f.x(i*p.xStep), end+4, "base")
		c.Text(f.x(i*p.xStep), end+16, "axis", "middle", p.xText(i*p.xStep))
	}
	c.Text(0, 11, "axis", "start", p.yLabel)
	c.Text((plotLeft+right)/2, end+30, "axis", "middle", p.xLabel)
	for _, l := range p.lines {
		l.band(c, f)
	}
	for _, l := range p.lines {
		l.draw(c, f)
	}
	p.names(c, end)
}

func (p *plot) names(c *canvas, end float64) {
	at, _ := p.places()
	for i, l := range p.lines {
		x, y := at[i].X, end+plotFoot+float64(at[i].Row)*nameRow+10
		c.Line(x, y-4, x+24, y-4, "curve "+styleOf(l.style))
		if l.marks {
			c.Circle(x+12, y-4, 3, "dot "+styleOf(l.style))
		}
		c.Text(x+30, y, "name", "start", render.FitText(l.name, 11, barsWide-x-30))
	}
}

// band is the area from the lowest to the highest seed.
func (l line) band(c *canvas, f frame) {
	if l.marks || l.steps {
		return
	}
	for _, part := range l.parts() {
		if len(part) < 2 {
			continue
		}
		var there, back strings.Builder
		for i, pt := range part {
			there.WriteString(moveOrLine(i) + xy(f.x(pt.x), f.y(pt.high)))
			last := part[len(part)-1-i]
			back.WriteString("L" + xy(f.x(last.x), f.y(last.low)))
		}
		c.Path(there.String()+back.String()+"z", "band "+styleOf(l.style))
	}
}

func moveOrLine(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

func (l line) draw(c *canvas, f frame) {
	for _, part := range l.parts() {
		var path strings.Builder
		for i, pt := range part {
			if l.steps && i > 0 {
				path.WriteString("H" + render.Coordinate(f.x(pt.x)))
			}
			path.WriteString(moveOrLine(i) + xy(f.x(pt.x), f.y(pt.y)))
		}
		c.Path(path.String(), "curve "+styleOf(l.style))
		for _, pt := range part {
			if l.marks {
				l.mark(c, f, pt)
			}
		}
	}
}

func (l line) mark(c *canvas, f frame, pt point) {
	x := f.x(pt.x)
	if f.y(pt.low)-f.y(pt.high) > 5 {
		c.Path("M"+xy(x, f.y(pt.low))+"V"+render.Coordinate(f.y(pt.high))+"M"+xy(x-3, f.y(pt.low))+"h6M"+xy(x-3, f.y(pt.high))+"h6", "spread "+styleOf(l.style))
	}
	c.Circle(x, f.y(pt.y), 3, "dot "+styleOf(l.style))
}

// parts are the known stretches; gaps between them are not drawn.
func (l line) parts() (out [][]point) {
	var part []point
	for _, pt := range append(l.points, point{y: math.NaN()}) {
		if !math.IsNaN(pt.y) {
			part = append(part, pt)
			continue
		}
		if len(part) > 0 {
			out, part = append(out, part), nil
		}
	}
	return out
}
