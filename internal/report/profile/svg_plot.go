// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/unit"
)

// plot is lines or points over two axes; y starts at 0, x at 0 or is binary
// logarithms of bytes.
type plot struct {
	xLabel, yLabel string
	xLog           bool
	wide           float64 // of the whole panel; 0: as on a phone
	lines          []line
	limits         []limit
}

// line is points of one kind. Style gives it colour and mark; even styles are
// filled.
type line struct {
	name   string
	style  int
	dashed bool
	open   bool // marks are not filled
	joined bool
	faint  bool // marks overlap
	points []point
}

// point has the extremes of its repeats, if there are several.
type point struct {
	x, y   float64
	xs, ys *[2]float64
}

// limit is an upright line: a cache's size.
type limit struct {
	x    float64
	text string
}

// Geometry of a plot.
const (
	plotWide  = 380.0
	plotHigh  = 190.0 // between the axes' ends
	plotLeft  = 46.0
	plotRight = 12.0
	plotHead  = 14.0 // for the y axis' unit
	limitRow  = 13.0
	plotFoot  = 38.0 // for the x axis
	nameRow   = 16.0
)

func (p *plot) empty() bool {
	return !slices.ContainsFunc(p.lines, func(l line) bool { return len(l.points) > 0 })
}

// frame is the position of things in a plot's panel.
type frame struct {
	p                     *plot
	left, right, top, end float64
	x0, x1, y1            float64 // of the axes, in the figures' units
	rows                  []int   // of the limits' texts
	names                 []render.LegendEntry
	nameRows              int
}

func (p *plot) panel(id, title, sub string) panel {
	f := p.frame()
	return panel{ID: id, Title: title, Sub: sub, W: p.wide, H: f.end + plotFoot + float64(f.nameRows)*nameRow, draw: f.draw}
}

func (p *plot) frame() frame {
	if p.wide == 0 {
		p.wide = plotWide
	}
	f := frame{p: p, left: plotLeft, right: p.wide - plotRight}
	f.axes()
	f.placeLimits()
	deepest := -1
	for _, r := range f.rows {
		deepest = max(deepest, r)
	}
	f.top = plotHead + float64(deepest+1)*limitRow + 4
	f.end = f.top + plotHigh
	f.placeNames()
	return f
}

// axes finds the values that they must reach.
func (f *frame) axes() {
	f.x0, f.x1, f.y1 = math.Inf(1), 0, 0
	for _, l := range f.p.lines {
		for _, pt := range l.points {
			f.x0, f.x1, f.y1 = min(f.x0, pt.x), max(f.x1, pt.x), max(f.y1, pt.y)
			if pt.ys != nil {
				f.y1 = max(f.y1, pt.ys[1])
			}
			if pt.xs != nil {
				f.x1 = max(f.x1, pt.xs[1])
			}
		}
	}
	for _, l := range f.p.limits {
		f.x0, f.x1 = min(f.x0, l.x), max(f.x1, l.x)
	}
	if !f.p.xLog {
		f.x0 = 0
	}
	if f.x1 <= f.x0 {
		f.x1 = f.x0*2 + 1e-9
	}
	f.y1 = max(f.y1*1.04, 1e-9)
}

func (f frame) x(v float64) float64 {
	share := (v - f.x0) / (f.x1 - f.x0)
	if f.p.xLog {
		share = math.Log2(v/f.x0) / math.Log2(f.x1/f.x0)
	}
	return f.left + min(max(share, 0), 1)*(f.right-f.left)
}

func (f frame) y(v float64) float64 { return f.end - min(max(v/f.y1, 0), 1)*(f.end-f.top) }

// placeLimits gives each text a row in which it overlaps no other.
func (f *frame) placeLimits() {
	var ends []float64 // by row
	for _, l := range f.p.limits {
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
}

// limitText is the start and end of a limit's text.
func (f frame) limitText(l limit) (from, to float64) {
	w := render.TextWidth(l.text, 10.5)
	from = min(max(f.x(l.x)-w/2, f.left), f.right-w)
	return from, from + w
}

// placeNames puts the lines' names in rows below the plot; a single line needs none.
func (f *frame) placeNames() {
	if len(f.p.lines) > 1 {
		f.names, f.nameRows = render.Legend(render.Each(f.p.lines, func(l line) string { return l.name }), f.left, f.right+plotRight)
	}
}

func (f frame) draw(c *canvas) {
	f.drawAxes(c)
	for i, l := range f.p.limits {
		from, _ := f.limitText(l)
		y := plotHead + float64(f.rows[i]+1)*limitRow
		c.Line(f.x(l.x), y+2, f.x(l.x), f.end, "limit")
		c.Text(from, y-1, "limitText", "start", l.text)
	}
	for _, l := range f.p.lines {
		f.drawLine(c, l)
	}
	for i, at := range f.names {
		l, y := f.p.lines[i], f.end+plotFoot+float64(at.Row)*nameRow+8
		if l.joined {
			c.Line(at.X, y-4, at.X+24, y-4, l.class("curve"))
		}
		c.Path(mark(l.style, at.X+12, y-4), l.class("dot"))
		c.Text(at.X+30, y, "name", "start", render.FitText(l.name, 11, f.right+plotRight-at.X-30))
	}
}

func (f frame) drawAxes(c *canvas) {
	c.Text(f.left-6, plotHead-3, "axis", "end", f.p.yLabel)
	step := render.TickStep(f.y1)
	for i := 0; float64(i)*step <= f.y1; i++ {
		v := float64(i) * step
		class := "grid"
		if i == 0 {
			class = "base"
		}
		c.Line(f.left, f.y(v), f.right, f.y(v), class)
		c.Text(f.left-6, f.y(v)+4, "axis", "end", tickText(v))
	}
	for _, v := range f.xTicks() {
		anchor := "middle"
		if f.x(v) > f.right-14 {
			anchor = "end"
		}
		c.Line(f.x(v), f.end, f.x(v), f.end+4, "base")
		c.Text(f.x(v), f.end+16, "axis", anchor, f.xText(v))
	}
	c.Text((f.left+f.right)/2, f.end+29, "axis", "middle", f.p.xLabel)
}

func (f frame) xText(v float64) string {
	if f.p.xLog {
		return unit.Bytes(v).String()
	}
	return tickText(v)
}

// xTicks are round figures; for bytes powers of two, as many as there is room for.
func (f frame) xTicks() []float64 {
	var out []float64
	if !f.p.xLog {
		step := render.TickStep(f.x1)
		for i := 0; float64(i)*step <= f.x1; i++ {
			out = append(out, float64(i)*step)
		}
		return out
	}
	first, last := int(math.Ceil(math.Log2(f.x0))), int(math.Floor(math.Log2(f.x1)))
	room := max(1, int((f.right-f.left)/62))
	stride := max(1, (last-first+room)/room)
	for e := first; e <= last; e += stride {
		out = append(out, math.Exp2(float64(e)))
	}
	return out
}

func (l line) class(kind string) string {
	class := kind + " s" + strconv.Itoa(l.style%chunk)
	if l.dashed && kind == "curve" {
		class += " dashed"
	}
	if l.open && kind == "dot" {
		class += " open"
	}
	if l.faint && kind == "dot" {
		class += " faint"
	}
	return class
}

func (f frame) drawLine(c *canvas, l line) {
	var path strings.Builder
	for i, pt := range l.points {
		if i == 0 {
			path.WriteString("M")
		} else {
			path.WriteString("L")
		}
		path.WriteString(render.Coordinate(f.x(pt.x)) + " " + render.Coordinate(f.y(pt.y)))
	}
	if l.joined && len(l.points) > 1 {
		c.Path(path.String(), l.class("curve"))
	}
	for _, pt := range l.points {
		f.bars(c, l, pt)
		c.Path(mark(l.style, f.x(pt.x), f.y(pt.y)), l.class("dot"))
	}
}

// bars go from the lowest to the highest repeat, if that is visible.
func (f frame) bars(c *canvas, l line, pt point) {
	const least = 4.0 // pixels: a mark is larger
	if pt.ys != nil && f.y(pt.ys[0])-f.y(pt.ys[1]) > least {
		x := render.Coordinate(f.x(pt.x))
		c.Path("M"+x+" "+render.Coordinate(f.y(pt.ys[0]))+"V"+render.Coordinate(f.y(pt.ys[1]))+whisker(f.x(pt.x), f.y(pt.ys[0]), true)+whisker(f.x(pt.x), f.y(pt.ys[1]), true), l.class("bar"))
	}
	if pt.xs != nil && f.x(pt.xs[1])-f.x(pt.xs[0]) > least {
		c.Path("M"+render.Coordinate(f.x(pt.xs[0]))+" "+render.Coordinate(f.y(pt.y))+"H"+render.Coordinate(f.x(pt.xs[1]))+whisker(f.x(pt.xs[0]), f.y(pt.y), false)+whisker(f.x(pt.xs[1]), f.y(pt.y), false), l.class("bar"))
	}
}

func whisker(x, y float64, level bool) string {
	if level {
		return "M" + render.Coordinate(x-3) + " " + render.Coordinate(y) + "H" + render.Coordinate(x+3)
	}
	return "M" + render.Coordinate(x) + " " + render.Coordinate(y-3) + "V" + render.Coordinate(y+3)
}

// mark is a path around a point: circle, square, triangle, diamond, and the first two
// rotated.
func mark(style int, x, y float64) string {
	n := func(dx, dy float64) string { return render.Coordinate(x+dx) + " " + render.Coordinate(y+dy) }
	switch style % chunk {
	case 1:
		return "M" + n(-3, -3) + "h6v6h-6z"
	case 2:
		return "M" + n(0, -4) + "L" + n(3.8, 3) + "H" + render.Coordinate(x-3.8) + "z"
	case 3:
		return "M" + n(0, -4.2) + "L" + n(4.2, 0) + "L" + n(0, 4.2) + "L" + n(-4.2, 0) + "z"
	case 4:
		return "M" + n(0, 4) + "L" + n(3.8, -3) + "H" + render.Coordinate(x-3.8) + "z"
	case 5:
		return "M" + n(-4, -1.5) + "h8v3h-8z"
	}
	return "M" + n(-3.2, 0) + "a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z"
}

// tickText is short: 0.2, 50, 100k, 20M.
func tickText(v float64) string {
	for _, scale := range []struct {
		unit   float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= scale.unit {
			if scale.suffix == "k" {
				return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
			}
			return strconv.FormatFloat(v/scale.unit, 'g', 4, 64) + scale.suffix
		}
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
