// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// HeatMap draws latency or bandwidth from node to node as an SVG file.
func HeatMap(w io.Writer, p profile.Profile, which profile.Part) error {
	p = render.Cleaned(p)
	panels := heatPanels(p, which)
	if len(panels) == 0 {
		return nothing(p, which)
	}
	return writeSVG(w, p, panels[0].Title+" from node to node", panels)
}

// nothing is the reason why there is no picture.
func nothing(p profile.Profile, part profile.Part) error {
	for _, s := range p.Skipped {
		if s.Part == part && s.What == "" {
			return fmt.Errorf("draw %s: it was not measured: %s", part, render.Or(s.Why, "no reason is given"))
		}
	}
	return fmt.Errorf("draw %s: the profile has none", part)
}

// maxHeat is the most nodes of a heat map: more would be illegible, and the profile's
// file has them.
const maxHeat = 64

func heatPanels(p profile.Profile, which profile.Part) []render.Panel {
	h := heatMap{title: "Latency", sub: "ns a load; darker is slower", print: render.Tenths}
	list := p.Latency
	if which == profile.Bandwidth {
		r := bandwidthRates(p)
		h, list = heatMap{title: "Bandwidth", sub: r.unit + " read (" + r.power + "); darker is more", print: r.print}, p.Bandwidth
	}
	h.matrix = newMatrix(p, list)
	if len(list) == 0 || len(h.to) > maxHeat {
		return nil
	}
	h.scale()
	return []render.Panel{{ID: "heat-" + string(which), Title: h.title, Sub: h.sub, Wide: max(heatLeft+float64(len(h.to))*h.w+2, 260), High: heatTop + float64(len(h.from))*h.h + heatFoot, Draw: h.draw}}
}

const (
	heatLeft = 56.0 // for the rows' names
	heatTop  = 36.0
	heatFoot = 44.0 // for the scale
)

// heatMap is numbers on colours.
type heatMap struct {
	matrix
	title, sub string
	print      func(float64) string
	w, h       float64 // of a cell
	low, high  float64
}

func (h *heatMap) scale() {
	h.low, h.high = math.Inf(1), math.Inf(-1)
	letters := 3
	for _, f := range h.at {
		if v, ok := f.Median.Get(); ok {
			h.low, h.high = min(h.low, v), max(h.high, v)
			letters = max(letters, render.Width(h.print(v)))
		}
	}
	h.w, h.h = 64, 38
	switch n := len(h.to); {
	case n > 12:
		h.w, h.h = 46, 28
	case n > 6:
		h.w, h.h = 54, 32
	}
	h.w = max(h.w, float64(letters)*12*render.LetterWidth+10)
}

// share is the position of a value between the lowest and the highest. Nearly equal
// values get nearly one colour.
func (h heatMap) share(v float64) float64 {
	span := max(h.high-h.low, 0.1*math.Abs(h.high))
	if !(span > 0) {
		return 0
	}
	return min(1, (v-h.low)/span)
}

func (h heatMap) draw(c *render.Canvas) {
	c.Text(heatLeft+float64(len(h.to))*h.w/2, 12, "axis", "middle", "memory of node")
	c.Text(0, heatTop-8, "axis", "start", "CPUs of")
	for j, to := range h.to {
		c.Text(heatLeft+(float64(j)+0.5)*h.w, heatTop-8, "name", "middle", strconv.Itoa(to))
	}
	for i, from := range h.from {
		y := heatTop + float64(i)*h.h
		c.Text(heatLeft-8, y+h.h/2+4, "name", "end", "node "+strconv.Itoa(from))
		for j, to := range h.to {
			h.cell(c, heatLeft+float64(j)*h.w, y, h.get(from, to), from == to)
		}
	}
	h.legend(c, heatTop+float64(len(h.from))*h.h+14)
}

func (h heatMap) cell(c *render.Canvas, x, y float64, f profile.Figure, local bool) {
	if v, ok := f.Median.Get(); ok {
		c.Cell(x, y, h.w, h.h, h.share(v), h.print(v), local)
		return
	}
	c.Hatched(x, y, h.w, h.h, "cell")
	c.Text(x+h.w/2, y+h.h/2+4.5, "num none", "middle", "?")
}

// legend is the scale, and the hatch if there is one.
func (h heatMap) legend(c *render.Canvas, y float64) {
	const steps, wide = 8, 14.0
	if !math.IsInf(h.low, 0) {
		low, high := h.print(h.low), h.print(h.high)
		x := heatLeft + render.TextWidth(low, 11) + 6
		c.Text(heatLeft, y+10, "axis", "start", low)
		for i := range steps {
			c.Fill(x+float64(i)*wide, y, wide, 12, "cell", render.Shade(float64(i)/(steps-1)*h.share(h.high)))
		}
		c.Text(x+steps*wide+6, y+10, "axis", "start", high)
	}
	if len(h.notes()) > 0 {
		c.Hatched(heatLeft, y+17, 14, 12, "cell")
		c.Text(heatLeft+20, y+27, "axis", "start", "? unknown")
	}
}

// hues are the colours of curves in their order.
var hues = [render.Hues]int{2, 1, 3, 4, 0, 5}

func hue(i int) string { return "s" + strconv.Itoa(hues[i]) }

// Curve draws latency against load as an SVG file.
func Curve(w io.Writer, p profile.Profile) error {
	p = render.Cleaned(p)
	panels := curvePanels(p)
	if len(panels) == 0 {
		return nothing(p, profile.Loaded)
	}
	return writeSVG(w, p, "Latency under load", panels)
}

// curvePanels have the local curves in one plot, the remote ones in another.
func curvePanels(p profile.Profile) []render.Panel {
	var near, far []profile.Curve
	r := loadedRates(p.Loaded)
	for _, c := range p.Loaded {
		if c.From == c.To {
			near = append(near, c)
		} else {
			far = append(far, c)
		}
	}
	var out []render.Panel
	for _, kind := range []struct {
		title  string
		curves []profile.Curve
	}{{"Local memory", near}, {"Remote memory", far}} {
		for some := range slices.Chunk(kind.curves, len(hues)) {
			if pl := curvePlot(some, r); !pl.Empty() {
				out = append(out, pl.Panel("curve-"+strconv.Itoa(len(out)), kind.title+" under load", "ns a load against "+r.unit+" of all loaders; bars: lowest and highest repeat"))
			}
		}
	}
	return out
}

func curvePlot(curves []profile.Curve, r rates) *render.Plot {
	pl := &render.Plot{X: render.Axis{Label: r.unit}, Y: render.Axis{Label: "ns"}, Wide: 490}
	for i, c := range curves {
		s := render.Line{Name: render.Or(c.Name, "unnamed"), Class: hue(i), Shape: i, Joined: true, Marked: true}
		for _, pt := range c.Points {
			x, ok1 := extent(pt.Bandwidth, 1/r.scale)
			y, ok2 := extent(pt.Latency, 1)
			if ok1 && ok2 {
				s.Points = append(s.Points, render.Point{X: x, Y: y})
			}
		}
		pl.Lines = append(pl.Lines, s)
	}
	return pl
}

// extent is a figure with its lowest and highest repeat; false: it is not known.
func extent(f profile.Figure, scale float64) (render.Extent, bool) {
	v, ok := f.Median.Get()
	if !ok || f.N < 2 {
		return render.Exactly(v * scale), ok
	}
	return render.Extent{Mid: v * scale, Low: f.Min * scale, High: f.Max * scale}, true
}

// WorkingSet draws latency by working set as an SVG file, with the caches found.
func WorkingSet(w io.Writer, p profile.Profile) error {
	p = render.Cleaned(p)
	panels := workingSetPanels(p)
	if len(panels) == 0 {
		return nothing(p, profile.Caches)
	}
	return writeSVG(w, p, "Latency by working set", panels)
}

func workingSetPanels(p profile.Profile) []render.Panel {
	pl := &render.Plot{X: sizes("working set"), Y: render.Axis{Label: "ns"}, Wide: 620}
	s := render.Line{Name: "ns a load, one CPU, local memory", Class: hue(0), Joined: true, Marked: true}
	for _, w := range p.WorkingSets {
		if y, ok := extent(w.Figure, 1); ok && w.Bytes > 0 {
			s.Points = append(s.Points, render.Point{X: render.Exactly(float64(w.Bytes)), Y: y})
		}
	}
	for _, c := range p.Caches {
		if b, ok := c.Size.Get(); ok {
			pl.Limits = append(pl.Limits, render.Limit{X: float64(b), Text: "L" + strconv.Itoa(c.Level) + " " + b.String()})
		}
	}
	if pl.Lines = []render.Line{s}; pl.Empty() {
		return nil
	}
	return []render.Panel{pl.Panel("working-set", "Latency by working set", "dashed: the largest working set that still fits a level")}
}

// sizes is an axis of bytes.
func sizes(label string) render.Axis {
	return render.Axis{Label: label, Binary: true, Print: render.Bytes}
}
