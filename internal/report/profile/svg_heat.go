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

func heatPanels(p profile.Profile, which profile.Part) []panel {
	h := heatMap{title: "Latency", sub: "ns a load; darker is slower", print: tenths}
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
	return []panel{{ID: "heat-" + string(which), Title: h.title, Sub: h.sub, W: max(heatLeft+float64(len(h.to))*h.w+2, 260), H: heatTop + float64(len(h.from))*h.h + heatFoot, draw: h.draw}}
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

func (h heatMap) draw(c *canvas) {
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

func (h heatMap) cell(c *canvas, x, y float64, f profile.Figure, local bool) {
	if v, ok := f.Median.Get(); ok {
		c.Cell(x, y, h.w, h.h, h.share(v), h.print(v), local)
		return
	}
	c.Fill(x, y, h.w, h.h, "cell", "url(#"+c.hatch+")")
	c.Text(x+h.w/2, y+h.h/2+4.5, "num none", "middle", "?")
}

// legend is the scale, and the hatch if there is one.
func (h heatMap) legend(c *canvas, y float64) {
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
		c.Fill(heatLeft, y+17, 14, 12, "cell", "url(#"+c.hatch+")")
		c.Text(heatLeft+20, y+27, "axis", "start", "? unknown")
	}
}

// chunk is the most curves of one plot.
const chunk = 6

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
func curvePanels(p profile.Profile) []panel {
	var near, far []profile.Curve
	r := loadedRates(p.Loaded)
	for _, c := range p.Loaded {
		if c.From == c.To {
			near = append(near, c)
		} else {
			far = append(far, c)
		}
	}
	var out []panel
	for _, kind := range []struct {
		title  string
		curves []profile.Curve
	}{{"Local memory", near}, {"Remote memory", far}} {
		for some := range slices.Chunk(kind.curves, chunk) {
			if pl := curvePlot(some, r); !pl.empty() {
				out = append(out, pl.panel("curve-"+strconv.Itoa(len(out)), kind.title+" under load", "ns a load against "+r.unit+" of all loaders; bars: lowest and highest repeat"))
			}
		}
	}
	return out
}

func curvePlot(curves []profile.Curve, r rates) *plot {
	pl := &plot{xLabel: r.unit, yLabel: "ns", wide: 490}
	for i, c := range curves {
		s := line{name: render.Or(c.Name, "unnamed"), style: i, joined: true}
		for _, pt := range c.Points {
			x, ok1 := pt.Bandwidth.Median.Get()
			y, ok2 := pt.Latency.Median.Get()
			if ok1 && ok2 {
				s.points = append(s.points, point{x / r.scale, y, extremes(pt.Bandwidth, 1/r.scale), extremes(pt.Latency, 1)})
			}
		}
		pl.lines = append(pl.lines, s)
	}
	return pl
}

// extremes are the lowest and highest repeat; none if there is only one.
func extremes(f profile.Figure, scale float64) *[2]float64 {
	if f.N < 2 {
		return nil
	}
	return &[2]float64{f.Min * scale, f.Max * scale}
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

func workingSetPanels(p profile.Profile) []panel {
	pl := &plot{xLabel: "working set", yLabel: "ns", xLog: true, wide: 620}
	s := line{name: "ns a load, one CPU, local memory", joined: true}
	for _, w := range p.WorkingSets {
		if y, ok := w.Median.Get(); ok && w.Bytes > 0 {
			s.points = append(s.points, point{float64(w.Bytes), y, nil, extremes(w.Figure, 1)})
		}
	}
	for _, c := range p.Caches {
		if b, ok := c.Size.Get(); ok {
			pl.limits = append(pl.limits, limit{float64(b), "L" + strconv.Itoa(c.Level) + " " + b.String()})
		}
	}
	if pl.lines = []line{s}; pl.empty() {
		return nil
	}
	return []panel{pl.panel("working-set", "Latency by working set", "dashed: the largest working set that still fits a level")}
}
