// SPDX-License-Identifier: Apache-2.0

package render

import (
	"math"
	"strings"
)

// Plot is lines or points over two axes.
//
//	ns         L2 ¦        ¦ L3
//	100 ─┼────────¦────────¦───●──
//	 50 ─┼────────¦───●────¦──────
//	  0 ─●────●───¦────────¦──────
//	     4 KiB  64 KiB  1 MiB
//	     ─●─ local   ─■─ remote
type Plot struct {
	Wide   float64 // of the whole panel
	X, Y   Axis
	Lines  []Line
	Limits []Limit
}

// Axis is as long as its figures need.
type Axis struct {
	Label     string
	Low, High float64              // what it reaches at least
	Step      float64              // between ticks; 0: a round one
	Binary    bool                 // logarithmic, from the least figure, with powers of two
	Print     func(float64) string // of ticks; nil: Short
}

// Line is points of one kind.
type Line struct {
	Name   string
	Class  string // colour and style, such as "s1 dashed": see pictures.css
	Shape  int    // of its marks
	Joined bool   // by a line, which is broken where a point is unknown (NaN)
	Steps  bool   // the line is drawn in steps, as a distribution
	Marked bool   // each point has a mark, and its extremes as whiskers
	Banded bool   // the extremes are an area
	Points []Point
}

// Point is a figure over another.
type Point struct{ X, Y Extent }

// Extent is a figure with the extremes of its repeats.
type Extent struct{ Mid, Low, High float64 }

// Exactly is a figure without extremes.
func Exactly(v float64) Extent { return Extent{v, v, v} }

// Limit is an upright line: a cache's size.
type Limit struct {
	X    float64
	Text string
}

// Geometry of a plot.
const (
	plotLeft   = 50.0
	plotRight  = 20.0
	plotTop    = 20.0  // for the y axis' label
	plotHigh   = 180.0 // between the axes' ends
	plotFoot   = 36.0  // for the x axis
	plotLimit  = 13.0  // a row of limits' texts
	plotName   = 16.0  // a row of lines' names
	plotFont   = 11.0
	limitFont  = 10.5
	leastShown = 4.0  // pixels from the lowest to the highest repeat: a mark is larger
	plotMargin = 0.04 // beyond figures that reach further than the axis has to
)

// Empty says that no point is known.
func (p *Plot) Empty() bool {
	for _, l := range p.Lines {
		if len(l.parts()) > 0 {
			return false
		}
	}
	return true
}

// Panel is the plot as a picture.
func (p *Plot) Panel(id, title, sub string) Panel {
	f := p.frame()
	return Panel{ID: id, Title: title, Sub: sub, Wide: p.Wide, High: f.end + plotFoot + float64(f.nameRows)*plotName, Draw: f.draw}
}

// plotFrame is the position of things in a plot.
type plotFrame struct {
	*Plot
	x, y     plotScale
	end      float64 // of the y axis: its lower end
	rows     []int   // of the limits' texts
	names    []LegendEntry
	nameRows int
}

func (p *Plot) frame() plotFrame {
	f := plotFrame{Plot: p}
	f.x = p.X.scale(plotLeft, p.Wide-plotRight, p.extents(func(pt Point) Extent { return pt.X }, p.Limits))
	deepest := f.placeLimits()
	top := plotTop + float64(deepest)*plotLimit
	f.end = top + plotHigh
	f.y = p.Y.scale(f.end, top, p.extents(func(pt Point) Extent { return pt.Y }, nil))
	f.names, f.nameRows = Legend(Each(p.Lines, func(l Line) string { return l.Name }), plotLeft, p.Wide)
	return f
}

// extents are the figures that an axis has to reach.
func (p *Plot) extents(of func(Point) Extent, limits []Limit) (all []Extent) {
	for _, l := range p.Lines {
		for _, part := range l.parts() {
			all = append(all, Each(part, of)...)
		}
	}
	for _, l := range limits {
		all = append(all, Exactly(l.X))
	}
	return all
}

// plotScale turns the figures of an axis into places.
type plotScale struct {
	Axis
	from, to float64 // places of Low and High
}

// scale extends the axis as far as the figures go.
func (a Axis) scale(from, to float64, all []Extent) plotScale {
	low, high := a.Low, a.High
	if a.Binary {
		low, high = math.Inf(1), 0
	}
	for _, e := range all {
		if !a.Binary || e.Low > 0 {
			low, high = min(low, e.Low), max(high, e.High)
		}
	}
	switch {
	case a.Binary && !(high > low):
		high = 2 * low
	case a.Binary:
	case high-low < 1e-12:
		high = low + 1
	default:
		margin := plotMargin * (high - low)
		if high > a.High {
			high += margin
		}
		if low < a.Low {
			low -= margin
		}
	}
	a.Low, a.High = low, high
	return plotScale{a, from, to}
}

func (s plotScale) at(v float64) float64 {
	share := (v - s.Low) / (s.High - s.Low)
	if s.Binary {
		share = math.Log2(v/s.Low) / math.Log2(s.High/s.Low)
	}
	return s.from + min(max(share, 0), 1)*(s.to-s.from)
}

func (s plotScale) text(v float64) string {
	if s.Print != nil {
		return s.Print(v)
	}
	return Short(v)
}

// ticks are round figures; powers of two are as many as there is room for.
func (s plotScale) ticks() (all []float64) {
	if s.Binary {
		const wide = 62 // pixels: "512 MiB" and a gap
		first, last := int(math.Ceil(math.Log2(s.Low))), int(math.Floor(math.Log2(s.High)))
		room := max(1, int((s.to-s.from)/wide))
		for e := first; e <= last; e += max(1, (last-first+room)/room) {
			all = append(all, math.Exp2(float64(e)))
		}
		return all
	}
	step := s.Step
	if step == 0 {
		step = TickStep(s.High - s.Low)
	}
	const rounding = 1e-9
	for i := math.Ceil(s.Low/step - rounding); i*step <= s.High+rounding*step; i++ {
		all = append(all, i*step)
	}
	return all
}

// placeLimits gives each text a row in which it overlaps no other, and returns the number
// of rows.
func (f *plotFrame) placeLimits() int {
	var ends []float64 // by row
	for _, l := range f.Limits {
		from, to := f.limitText(l)
		row := 0
		for row < len(ends) && from < ends[row]+6 {
			row++
		}
		if row == len(ends) {
			ends = append(ends, 0)
		}
		ends[row] = to
		f.rows = append(f.rows, row)
	}
	return len(ends)
}

// limitText is the start and end of a limit's text.
func (f plotFrame) limitText(l Limit) (from, to float64) {
	w := TextWidth(l.Text, limitFont)
	from = min(max(f.x.at(l.X)-w/2, plotLeft), f.Wide-plotRight-w)
	return from, from + w
}

func (f plotFrame) draw(c *Canvas) {
	f.drawAxes(c)
	for i, l := range f.Limits {
		from, _ := f.limitText(l)
		x, y := f.x.at(l.X), plotTop+float64(f.rows[i]+1)*plotLimit-4
		c.Line(x, y+2, x, f.end, "limit")
		c.Text(from, y-1, "limitText", "start", l.Text)
	}
	for _, l := range f.Lines {
		f.drawBand(c, l)
	}
	for _, l := range f.Lines {
		f.drawLine(c, l)
	}
	for i, at := range f.names {
		f.drawName(c, f.Lines[i], at.X, f.end+plotFoot+float64(at.Row)*plotName+10)
	}
}

func (f plotFrame) drawAxes(c *Canvas) {
	right := f.Wide - plotRight
	for _, v := range f.y.ticks() {
		class := "grid"
		if v == 0 {
			class = "base"
		}
		c.Line(plotLeft, f.y.at(v), right, f.y.at(v), class)
		c.Text(plotLeft-6, f.y.at(v)+4, "axis", "end", f.y.text(v))
	}
	for _, v := range f.x.ticks() {
		text, anchor := f.x.text(v), "middle"
		if f.x.at(v)+TextWidth(text, plotFont)/2 > f.Wide {
			anchor = "end"
		}
		c.Line(f.x.at(v), f.end, f.x.at(v), f.end+4, "base")
		c.Text(f.x.at(v), f.end+16, "axis", anchor, text)
	}
	c.Text(0, plotFont, "axis", "start", f.Y.Label)
	c.Text((plotLeft+right)/2, f.end+30, "axis", "middle", f.X.Label)
}

func (f plotFrame) drawName(c *Canvas, l Line, x, y float64) {
	if l.Joined {
		c.Line(x, y-4, x+24, y-4, "curve "+l.Class)
	}
	if l.Marked {
		c.Path(markPath(l.Shape, x+12, y-4), "dot "+l.Class)
	}
	c.Text(x+30, y, "name", "start", FitText(l.Name, plotFont, f.Wide-x-30))
}

// drawBand draws the area from the lowest to the highest repeat.
func (f plotFrame) drawBand(c *Canvas, l Line) {
	for _, part := range l.parts() {
		if !l.Banded || len(part) < 2 {
			continue
		}
		var there, back strings.Builder
		for i, pt := range part {
			last := part[len(part)-1-i]
			there.WriteString(moveOrLine(i) + XY(f.x.at(pt.X.Mid), f.y.at(pt.Y.High)))
			back.WriteString("L" + XY(f.x.at(last.X.Mid), f.y.at(last.Y.Low)))
		}
		c.Path(there.String()+back.String()+"z", "band "+l.Class)
	}
}

func (f plotFrame) drawLine(c *Canvas, l Line) {
	for _, part := range l.parts() {
		var path strings.Builder
		for i, pt := range part {
			x := f.x.at(pt.X.Mid)
			if l.Steps && i > 0 {
				path.WriteString("H" + Coordinate(x))
			}
			path.WriteString(moveOrLine(i) + XY(x, f.y.at(pt.Y.Mid)))
		}
		if l.Joined && len(part) > 1 {
			c.Path(path.String(), "curve "+l.Class)
		}
		for _, pt := range part {
			f.drawMark(c, l, pt)
		}
	}
}

func (f plotFrame) drawMark(c *Canvas, l Line, pt Point) {
	if !l.Marked {
		return
	}
	x, y := f.x.at(pt.X.Mid), f.y.at(pt.Y.Mid)
	if low, high := f.y.at(pt.Y.Low), f.y.at(pt.Y.High); low-high > leastShown {
		c.Path("M"+XY(x, low)+"V"+Coordinate(high)+"M"+XY(x-3, low)+"h6M"+XY(x-3, high)+"h6", "spread "+l.Class)
	}
	if low, high := f.x.at(pt.X.Low), f.x.at(pt.X.High); high-low > leastShown {
		c.Path("M"+XY(low, y)+"H"+Coordinate(high)+"M"+XY(low, y-3)+"v6M"+XY(high, y-3)+"v6", "spread "+l.Class)
	}
	c.Path(markPath(l.Shape, x, y), "dot "+l.Class)
}

// parts are the known stretches; gaps between them are not drawn.
func (l Line) parts() (out [][]Point) {
	var part []Point
	for _, pt := range append(l.Points, Point{Y: Exactly(math.NaN())}) {
		if !math.IsNaN(pt.Y.Mid) {
			part = append(part, pt)
			continue
		}
		if len(part) > 0 {
			out, part = append(out, part), nil
		}
	}
	return out
}

func moveOrLine(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

// markPath is a path around a point: circle, square, triangle, diamond, and the first two
// rotated.
func markPath(shape int, x, y float64) string {
	switch shape % Hues {
	case 1:
		return "M" + XY(x-3, y-3) + "h6v6h-6z"
	case 2:
		return "M" + XY(x, y-4) + "L" + XY(x+3.8, y+3) + "H" + Coordinate(x-3.8) + "z"
	case 3:
		return Diamond(x, y, 4.2)
	case 4:
		return "M" + XY(x, y+4) + "L" + XY(x+3.8, y-3) + "H" + Coordinate(x-3.8) + "z"
	case 5:
		return "M" + XY(x-4, y-1.5) + "h8v3h-8z"
	}
	return "M" + XY(x-3.2, y) + "a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z"
}

// Diamond is a path around a point, at a distance.
func Diamond(x, y, r float64) string {
	return "M" + XY(x, y-r) + "L" + XY(x+r, y) + "L" + XY(x, y+r) + "L" + XY(x-r, y) + "z"
}

// XY is a point of a path.
func XY(x, y float64) string { return Coordinate(x) + " " + Coordinate(y) }
