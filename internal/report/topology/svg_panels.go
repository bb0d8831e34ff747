// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// panel is a card below the nodes.
type panel struct {
	title, sub string
	w, h       float64 // of what is in it
	draw       func(c *canvas, x, y float64)
}

const (
	cardPad  = 14.0
	cardTop  = 46.0
	maxHeat  = 256 // nodes in the heat map: cells of more could not be seen, and JSON has them
	maxTable = 24  // rows of a table
	heatHead = 30.0
	least    = 17.0 // the width of a cell that has room for a small number
)

// drawPanels draws the cards and returns the height they took.
func (f facts) drawPanels(c *canvas, y float64) float64 {
	panels := f.panels()
	boxes := make([]*box, len(panels))
	for i, p := range panels {
		w := max(p.w, min(render.TextWidth(p.title, 14)*1.1, innerWidth-2*cardPad), min(render.TextWidth(p.sub, 11), innerWidth-2*cardPad))
		boxes[i] = &box{w: w + 2*cardPad, h: cardTop + p.h + cardPad}
	}
	_, h := flow(boxes, innerWidth, gap)
	level(boxes)
	for i, p := range panels {
		x, top := pageMargin+boxes[i].x, y+boxes[i].y
		c.Rect(x, top, boxes[i].w, boxes[i].h, "card", 6)
		c.text(x+cardPad, top+22, "h2", p.title)
		c.text(x+cardPad, top+38, "small", p.sub)
		p.draw(c, x+cardPad, top+cardTop)
	}
	if len(panels) > 0 {
		h += gap
	}
	return h
}

// level makes the boxes of a row equally high.
func level(boxes []*box) {
	rows := map[float64]float64{}
	for _, b := range boxes {
		rows[b.y] = max(rows[b.y], b.h)
	}
	for _, b := range boxes {
		b.h = rows[b.y]
	}
}

func (f facts) panels() []panel {
	var list []panel
	for _, make := range []func() (panel, bool){f.heatPanel, f.graphPanel, f.accessPanel, f.daxPanel, f.strayPanel, f.lostPanel} {
		if p, ok := make(); ok {
			list = append(list, p)
		}
	}
	list = append(list, f.linkPanels()...)
	return slices.Insert(list, min(2, len(list)), f.measuredPanels()...) // beside the distances
}

// heatPanel is the SLIT, numbers on colours.
func (f facts) heatPanel() (panel, bool) {
	n := len(f.Nodes)
	if n < 2 || n > maxHeat {
		return panel{}, false
	}
	w, h := 44.0, 28.0
	switch {
	case n > 64:
		w = (innerWidth - 2*cardPad - heatHead) / float64(n)
		h = w
	case n > 40:
		w, h = least, least
	case n > 16:
		w, h = 26, 20
	case n > 8:
		w, h = 34, 24
	}
	p := panel{title: "Distances (SLIT)", sub: "from row to column; 10 is local" + f.distanceMarks(), w: heatHead + float64(n)*w, h: 18 + float64(n)*h}
	if w < 24 {
		p.h += scaleHeight
	}
	p.draw = func(c *canvas, x, y float64) {
		f.drawHeat(c, x, y, w, h)
		if w < 24 {
			f.drawScale(c, x+heatHead, y+18+float64(n)*h+10, p.w-heatHead)
		}
	}
	return p, true
}

func (f facts) drawHeat(c *canvas, x, y, w, h float64) {
	class, every := "head", 1
	if w < 24 {
		class = "head tiny"
	}
	for float64(every)*w < least { // room for a node's number
		every++
	}
	for i, from := range f.Nodes {
		top := y + 18 + float64(i)*h
		if i%every == 0 {
			c.middle(x+heatHead+(float64(i)+0.5)*w, y+12, class, strconv.Itoa(from.ID))
			c.right(x+24, top+h/2+4, class, strconv.Itoa(from.ID))
		}
		for j, to := range f.Nodes {
			f.drawDistance(c, x+heatHead+float64(j)*w, top, w, h, f.Distance(from.ID, to.ID), i == j)
		}
	}
}

// drawScale says which colour is which distance, where cells have no number or a small one.
func (f facts) drawScale(c *canvas, x, y, wide float64) {
	values := f.distancesMet()
	const w, most = 34.0, 16
	if len(values) > most { // steps between the least and the farthest
		low, high := values[0], values[len(values)-1]
		values = nil
		for i := range most {
			values = append(values, low+(high-low)*i/(most-1))
		}
	}
	for i, d := range values {
		if float64(i+1)*w <= wide {
			f.drawDistance(c, x+float64(i)*w, y, w, 18, unit.Some(d), false)
		}
	}
}

const scaleHeight = 30.0

// distancesMet are the different distances that are a way, ascending.
func (f facts) distancesMet() []int {
	var all []int
	for _, from := range f.Nodes {
		for _, to := range f.Nodes {
			if d, ok := f.Distance(from.ID, to.ID).Get(); ok && d != noWay {
				all = append(all, d)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (f facts) drawDistance(c *canvas, x, y, w, h float64, o unit.Opt[int], local bool) {
	d, ok := o.Get()
	share := 0.0
	if ok && f.far > machine.LocalDistance {
		share = float64(min(d, f.far)-machine.LocalDistance) / float64(f.far-machine.LocalDistance)
	}
	class := "num"
	switch {
	case !ok:
		c.Rect(x, y, w, h, "cell none", 0)
	case d == noWay:
		c.Fill(x, y, w, h, "cell", "#3b4754")
		class += " light"
	default:
		c.Fill(x, y, w, h, "cell", render.Shade(share))
		if share > 0.55 {
			class += " light"
		}
	}
	if local {
		class += " local"
	}
	switch {
	case w >= 24:
		c.middle(x+w/2, y+h/2+4.5, class, distance(o))
	case w >= least:
		c.middle(x+w/2, y+h/2+3, class+" tiny", distance(o))
	}
}

// farthestWay is the largest distance that is one.
func (f facts) farthestWay() int {
	far := 0
	for _, from := range f.Nodes {
		for _, to := range f.Nodes {
			if d := f.Distance(from.ID, to.ID).Or(0); d < noWay {
				far = max(far, d)
			}
		}
	}
	return far
}

// accessPanel is the HMAT as a table.
func (f facts) accessPanel() (panel, bool) {
	rows := [][]string{{"memory of", "seen from", "read", "write", "read", "write"}}
	for _, n := range f.Nodes {
		for _, a := range n.Access {
			if a.ReadLatency.Known() || a.WriteLatency.Known() || a.ReadBandwidth.Known() || a.WriteBandwidth.Known() {
				rows = append(rows, accessRow(n, a))
			}
		}
	}
	if len(rows) == 1 {
		return panel{}, false
	}
	return tablePanel("Latency and bandwidth", "as the firmware says (HMAT); not measured", rows), true
}

// tablePanel shows rows, the heads first.
func tablePanel(title, sub string, rows [][]string) panel {
	if len(rows) > maxTable {
		more := make([]string, len(rows[0]))
		more[0] = fmt.Sprintf("%d more", len(rows)-maxTable)
		rows = append(rows[:maxTable:maxTable], more)
	}
	widths := make([]float64, len(rows[0]))
	total := 0.0
	for i := range widths {
		for _, r := range rows {
			widths[i] = max(widths[i], min(render.TextWidth(r[i], 12), 360)+16)
		}
		total += widths[i]
	}
	p := panel{title: title, sub: sub, w: total, h: float64(len(rows)) * 20}
	p.draw = func(c *canvas, x, y float64) {
		for i, r := range rows {
			drawRow(c, r, widths, x, y+float64(i)*20+14, i == 0)
		}
		c.Line(x, y+19, x+total, y+19, "rule")
	}
	return p
}

// drawRow sets the first two columns to the left, figures to the right.
func drawRow(c *canvas, row []string, widths []float64, x, y float64, head bool) {
	class := "num"
	if head {
		class = "head"
	}
	for i, text := range row {
		text = render.FitText(text, 12, widths[i])
		if i < 2 {
			c.text(x, y, class, text)
		} else {
			c.right(x+widths[i], y, class, text)
		}
		x += widths[i]
	}
}

// daxPanel has the devices of the dax bus.
func (f facts) daxPanel() (panel, bool) {
	if len(f.DAX) == 0 {
		return panel{}, false
	}
	rows := [][]string{{"device", "driver", "memory", "of node"}}
	for _, d := range f.DAX {
		rows = append(rows, []string{d.Name, render.Or(d.Driver, none), d.Size.String(), d.Node.String()})
	}
	return tablePanel("Memory devices (dax)", "memory that is of a node once the driver is kmem", rows), true
}

// maxLinks is how many devices' links fit a table.
const maxLinks = 20

// linkPanels are the matrices between devices.
func (f facts) linkPanels() (list []panel) {
	for _, l := range f.Links {
		if len(l.Devices) > maxLinks {
			continue
		}
		rows := [][]string{{"from", "to"}}
		for i := range l.Devices {
			rows[0] = append(rows[0], strconv.Itoa(i))
		}
		for i, name := range l.Devices {
			row := []string{strconv.Itoa(i), name}
			for _, v := range l.Values[i] {
				row = append(row, distance(v))
			}
			rows = append(rows, row)
		}
		list = append(list, tablePanel("Links", render.Or(l.Name, "without a name"), rows))
	}
	return list
}

// strayPanel has the devices of no known node.
func (f facts) strayPanel() (panel, bool) {
	list := f.strays()
	if len(list) == 0 {
		return panel{}, false
	}
	const wide = 420.0
	title, sub := "Devices on no known node", "the firmware does not say where they are attached"
	if len(f.Nodes) == 1 {
		title, sub = "Devices", "with one node, none is nearer than another"
	}
	return panel{title: title, sub: sub, w: wide, h: tagRows(list, wide) * (tagHeight + 4),
		draw: func(c *canvas, x, y float64) { drawTags(c, list, x, y, wide) }}, true
}

// lostPanel has the online CPUs of no known node.
func (f facts) lostPanel() (panel, bool) {
	cpus := f.lost()
	if cpus.IsEmpty() {
		return panel{}, false
	}
	b := &box{gap: 6, kids: f.cpuBoxes(cpus, f.cell(1))}
	b.arrange(520)
	return panel{title: "CPUs on no known node", sub: "no node claims them", w: b.w, h: b.h,
		draw: func(c *canvas, x, y float64) { b.draw(c, x, y) }}, true
}
