// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"

	"homenode/internal/render"
	"homenode/internal/sim/arena"
)

// dots are median speeds with their intervals, in groups: policies under a mix. The axis is
// logarithmic: twice as fast is as far to the right as half as fast is to the left.
//
//	parallel
//	hand              │    ├●┤      ×1.31
//	brm               │   ├─●─┤     ×1.27
//	interleave    ├●┤ │             ×0.91
type dots struct {
	id, title, sub string
	groups         []dotGroup
}

type dotGroup struct {
	name string
	rows []dotRow
}

// dotRow has no interval where low is not above 0; no figure where known is false.
type dotRow struct {
	name             string
	value, low, high float64
	known, oracle    bool
}

// Geometry, in CSS pixels.
const (
	dotsWide     = 480.0
	dotName      = 118.0
	dotFigure    = 58.0
	dotRowH      = 17.0
	dotGroupHead = 24.0
	dotAxisFoot  = 22.0
	// leastReach is the least extent of the axis to either side; with less, noise would
	// look large.
	leastReach = 0.05
)

func (d dots) height() float64 {
	h := dotAxisFoot + 4
	for _, g := range d.groups {
		h += dotGroupHead + float64(len(g.rows))*dotRowH + 4
	}
	return h
}

// reach is the extent of the axis, as logarithms. A starved policy's 0 is at its left end.
func (d dots) reach() (low, high float64) {
	low, high = -leastReach, leastReach
	for _, g := range d.groups {
		for _, r := range g.rows {
			for _, v := range []float64{r.value, r.low, r.high} {
				if r.known && v > 0 {
					low, high = min(low, math.Log(v)), max(high, math.Log(v))
				}
			}
		}
	}
	pad := 0.03 * (high - low)
	return max(low, -leastSpeed) - pad, high + pad
}

// leastSpeed limits the axis to a thousandth of the speed, as a logarithm, for starved
// apps.
const leastSpeed = 6.9

// mostTicks fit below a picture.
const mostTicks = 7

// ticks are round speeds within the axis, on the finest scale of which at most mostTicks
// fit.
func ticks(low, high float64) (all []float64) {
	for _, step := range []float64{0.02, 0.05, 0.1, 0.2, 0.5} {
		all = all[:0]
		for i := math.Ceil(math.Exp(low) / step); i*step <= math.Exp(high) && len(all) <= mostTicks; i++ {
			all = append(all, math.Round(i*step*100)/100)
		}
		if len(all) <= mostTicks && high-low < 1.5 {
			return all
		}
	}
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		all = all[:0]
		for decade := 1e-3; decade <= 1e18; decade *= 10 {
			for _, m := range mantissas {
				if v := math.Log(m * decade); v >= low && v <= high {
					all = append(all, m*decade)
				}
			}
		}
		if len(all) <= mostTicks {
			break
		}
	}
	return all
}

func (d dots) panel() render.Panel {
	return render.Panel{ID: d.id, Title: d.title, Sub: d.sub, Wide: dotsWide, High: d.height(), Draw: d.draw}
}

func (d dots) draw(c *render.Canvas) {
	low, high := d.reach()
	right := dotsWide - dotFigure
	x := func(v float64) float64 {
		if !(v > 0) {
			return dotName
		}
		return dotName + (min(max(math.Log(v), low), high)-low)/(high-low)*(right-dotName)
	}
	end := d.height() - dotAxisFoot
	for _, v := range ticks(low, high) {
		class := "grid"
		if math.Abs(v-1) < 1e-9 {
			class = "base"
		}
		c.Line(x(v), 2, x(v), end, class)
		c.Text(x(v), end+15, "axis", "middle", "×"+render.Short(v))
	}
	y := 4.0
	for _, g := range d.groups {
		c.Text(0, y+15, "group", "start", render.FitText(g.name, 12.5, dotsWide))
		y += dotGroupHead
		for _, r := range g.rows {
			r.draw(c, x, y+dotRowH/2, right)
			y += dotRowH
		}
		y += 4
	}
}

func (r dotRow) draw(c *render.Canvas, x func(float64) float64, mid, right float64) {
	c.Text(0, mid+4, "name", "start", render.FitText(r.name, 11, dotName-6))
	if !r.known {
		c.Text(right+8, mid+4, "axis", "start", "none")
		return
	}
	class := "dot " + sideOf(r.value, r.low, r.high)
	if r.oracle {
		class += " oracle"
	}
	if r.low > 0 {
		c.Path(render.Whisker(x(r.low), x(r.high), mid), "whisker")
	}
	c.Circle(x(r.value), mid, 4, class)
	c.Text(right+8, mid+4, "figure", "start", render.Times(r.value))
}

// sideOf is a colour, by the whole interval if there is one.
func sideOf(value, low, high float64) string {
	if !(low > 0) {
		return "open"
	}
	switch {
	case low > 1+arena.Noticeable:
		return "up"
	case high < 1-arena.Noticeable:
		return "down"
	}
	return "even"
}

// dotsOf is a machine's picture; false: nothing was compared on it.
func (v arenaView) dotsOf(i int, k arena.Ranking) (dots, bool) {
	d := dots{id: fmt.Sprintf("dots%d", i), title: k.Machine, sub: "Speed, × that of " + v.Against + ": median of the seeds, and its interval."}
	if text := v.machineText(k.Machine); text != "" {
		d.title += ": " + text
	}
	for _, mix := range v.mixesOn(k.Machine) {
		g := dotGroup{name: mix}
		for _, p := range k.Places {
			if l, ok := v.lineOf(p.Policy, k.Machine, mix); ok && p.Policy != v.Against {
				e := l.Speed
				g.rows = append(g.rows, dotRow{name: p.Policy, value: e.Median, low: e.CI.Low, high: e.CI.High, known: e.N > 0, oracle: oracle(p.Policy)})
			}
		}
		if len(g.rows) > 0 {
			d.groups = append(d.groups, g)
		}
	}
	return d, len(d.groups) > 0
}

// arenaStyle is the style of what only dots have.
const arenaStyle = `
svg .whisker{stroke:var(--muted);stroke-width:1.3}
svg .dot{stroke:var(--card);stroke-width:1}
svg .dot.up{fill:var(--ours)}svg .dot.down{fill:var(--mark)}svg .dot.even{fill:var(--peer)}
svg .dot.open{fill:var(--card);stroke:var(--fg);stroke-width:1.3}
svg .dot.oracle{stroke:var(--ceiling);stroke-width:2}
`
