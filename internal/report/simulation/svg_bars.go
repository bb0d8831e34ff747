// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"

	"homenode/internal/render"
)

// bars are horizontal, from 0 to either side, in groups: arms, or arms of services. Names
// are at the left and figures at the right, so that nothing depends on colour.
//
//	feed
//	mao-a           ██├─┤│      −4.7%
//	mao-b        ███├█┤ ◆│      −9.7%  ◆ −12.1%
type bars struct {
	groups []barGroup
	print  func(float64) string // figures
	axis   func(float64) string // of the axis: round figures
	top    float64              // least extent of the axis; 0: as far as needed
}

type barGroup struct {
	name string // "": none
	rows []barRow
}

// barRow has no figure where known is false; Mark is the paper's figure, if marked.
type barRow struct {
	name             string
	style            int
	value, low, high float64
	known            bool
	mark             float64
	marked           bool
}

// Geometry, in CSS pixels.
const (
	barsWide     = 480.0
	barName      = 118.0
	barFigure    = 60.0 // room for a figure
	barMark      = 64.0 // room for a paper's figure
	barRowH      = 19.0
	barThick     = 11.0
	barGroupHead = 22.0
	axisFoot     = 22.0
)

func (b bars) panel(id, title, sub string, t render.Grid) panel {
	return panel{render.Panel{ID: id, Title: title, Sub: sub, Wide: barsWide, High: b.height(), Draw: b.draw}, t}
}

func (b bars) empty() bool {
	for _, g := range b.groups {
		for _, r := range g.rows {
			if r.known {
				return false
			}
		}
	}
	return true
}

func (b bars) marked() bool {
	for _, g := range b.groups {
		for _, r := range g.rows {
			if r.marked {
				return true
			}
		}
	}
	return false
}

func (b bars) height() float64 {
	h := axisFoot + 4
	for _, g := range b.groups {
		h += float64(len(g.rows))*barRowH + 4
		if g.name != "" {
			h += barGroupHead
		}
	}
	return h
}

// reach is the extent of the axis.
func (b bars) reach() (low, high float64) {
	high = b.top
	for _, g := range b.groups {
		for _, r := range g.rows {
			if r.known {
				low, high = min(low, r.value, r.low), max(high, r.value, r.high)
			}
			if r.marked {
				low, high = min(low, r.mark), max(high, r.mark)
			}
		}
	}
	if high-low < 1e-9 {
		high = low + 1
	}
	pad := 0.03 * (high - low)
	if low < 0 {
		low -= pad
	}
	if high > b.top {
		high += pad
	}
	return low, high
}

func (b bars) draw(c *render.Canvas) {
	low, high := b.reach()
	right := barsWide - barFigure
	if b.marked() {
		right -= barMark
	}
	x := func(v float64) float64 { return barName + (v-low)/(high-low)*(right-barName) }
	end := b.height() - axisFoot
	step := render.TickStep(high - low)
	for i := math.Ceil(low / step); i*step <= high*1.0001; i++ {
		class := "grid"
		if i == 0 {
			class = "base"
		}
		c.Line(x(i*step), 2, x(i*step), end, class)
		c.Text(x(i*step), end+15, "axis", "middle", b.axis(i*step))
	}
	y := 4.0
	for _, g := range b.groups {
		if g.name != "" {
			c.Text(0, y+14, "group", "start", render.FitText(g.name, 12.5, barsWide))
			y += barGroupHead
		}
		for _, r := range g.rows {
			b.row(c, r, x, y, right)
			y += barRowH
		}
		y += 4
	}
}

func (b bars) row(c *render.Canvas, r barRow, x func(float64) float64, y, right float64) {
	mid := y + barRowH/2
	c.Text(0, mid+4, "name", "start", render.FitText(r.name, 11, barName-6))
	if r.known {
		from, to := min(x(0), x(r.value)), max(x(0), x(r.value))
		c.Rect(from, mid-barThick/2, max(to-from, 0.5), barThick, "fill "+styleOf(r.style), 1.5)
		if r.high > r.low {
			c.Path(render.Whisker(x(r.low), x(r.high), mid), "whisker")
		}
		c.Text(right+8, mid+4, "figure", "start", b.print(r.value))
	} else {
		c.Line(x(0), mid, right, mid, "none")
		c.Text(right+8, mid+4, "axis", "start", none)
	}
	if r.marked {
		c.Path(render.Diamond(x(r.mark), mid, 5), "paper")
		c.Path(render.Diamond(right+barFigure+6, mid, 5), "paper")
		c.Text(right+barFigure+13, mid+4, "paperText", "start", b.print(r.mark))
	}
}
