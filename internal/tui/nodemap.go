// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// The map consists of boxes if there is room, else of one line per node, in
// columns.
const (
	boxHeight  = 5  // one more if there is room: then reads have their own line
	boxMin     = 26 // cells; in a narrower box the figures would fill everything
	boxMax     = 60
	lineMin    = 38
	columnsGap = 2
)

// drawMap draws the nodes from y on and returns the first row of the table. It
// takes about half of the space above the bottom lines at most.
func (m *Model) drawMap(c *canvas, f Frame, y, bottom int) int {
	nodes := f.Window.Nodes
	if len(nodes) == 0 {
		return y
	}
	moving := trafficOf(f.Window)
	rows := m.tableRows(f)
	budget := max(1, bottom-y-1-min(rows, max(3, (bottom-y)*2/5)))
	if perRow, rows := boxes(len(nodes), c.w); rows*boxHeight <= budget {
		width, height := min(boxMax, c.w/perRow), boxHeight
		if rows*(boxHeight+1) <= min(budget, (bottom-y)/2) && busiest(moving) > 0 {
			height++
		}
		for i := range nodes {
			m.box(c, f, i, moving, rect{i % perRow * width, y + i/perRow*height, width, height})
		}
		return y + rows*height
	}
	columns := 1
	for (len(nodes)+columns-1)/columns > budget && c.w/(columns+1) >= lineMin {
		columns++
	}
	lines := min(budget, (len(nodes)+columns-1)/columns)
	width := c.w / columns
	for i := range nodes {
		if at := i / columns; at < lines {
			m.nodeLine(c, f, i, moving[i], i%columns*width+1, y+at, width-columnsGap)
		}
	}
	if hidden := len(nodes) - lines*columns; hidden > 0 {
		text := fmt.Sprintf(" … and %d more nodes ", hidden+1)
		c.clear((columns-1)*width, y+lines-1, width, 1)
		c.put((columns-1)*width+1, y+lines-1, dim, text)
	}
	return y + lines
}

// boxes returns how many boxes a row has, evenly, and how many rows there are.
func boxes(n, width int) (perRow, rows int) {
	perRow = max(1, min(n, width/boxMin))
	rows = (n + perRow - 1) / perRow
	return (n + rows - 1) / rows, rows
}

func busiest(all []traffic) float64 {
	top := 0.0
	for _, t := range all {
		top = max(top, t.rate.Or(0))
	}
	return top
}

type rect struct{ x, y, w, h int }

// box is one node; its reads are relative to the busiest node's:
//
//	╭ node 0 cpus 0-7 ───────────────╮
//	│ cpu   █████████░░░░   5.1 of 8 │
//	│ mem   ████▓▓▓▒·····  21G of 32G│
//	│ local ████████████░       93%e │
//	│ reads ██████░░░░░░░ 3.4 GB/s e │
//	╰ distance 10 16 21 21 ──────────╯
func (m *Model) box(c *canvas, f Frame, i int, all []traffic, r rect) {
	n, t := f.Window.Nodes[i], all[i]
	frame(c, r)
	at := c.put(r.x+1, r.y, strong, " node ")
	at = c.put(at, r.y, nodeStyle(i), string(nodeGlyph(n.ID)))
	if n.ID > 9 {
		at = c.put(at, r.y, strong, fmt.Sprintf(" = %d", n.ID))
	}
	at = c.put(at, r.y, plain, " ")
	if room := r.x + r.w - 3 - at - len("cpus "); room > 2 && !n.CPUs.IsEmpty() {
		c.put(at, r.y, dim, "cpus "+fit(n.CPUs.String(), room, false)+" ")
	}
	if text := distances(f, n.ID, r.w-4); text != "" {
		c.put(r.x+1, r.y+r.h-1, dim, " "+text+" ")
	}
	x, inner, apart := r.x+2, r.w-4, r.h > boxHeight
	m.bar(c, x, r.y+1, inner, "cpu   ", cpuText(n), func(x, w int) { cpuBar(c, n, x, r.y+1, w) })
	m.bar(c, x, r.y+2, inner, "mem   ", memText(n), func(x, w int) { memBar(c, n, x, r.y+2, w) })
	m.bar(c, x, r.y+3, inner, "local ", localText(t, !apart && inner >= 30), func(x, w int) { shareBar(c, t.local, x, r.y+3, w) })
	if apart {
		part := share(t.rate.Or(0), busiest(all))
		m.bar(c, x, r.y+4, inner, "reads ", readsText(t), func(x, w int) { shareBar(c, part, x, r.y+4, w) })
	}
}

func frame(c *canvas, r rect) {
	line := strings.Repeat("─", max(0, r.w-2))
	c.put(r.x, r.y, dim, "╭"+line+"╮")
	c.put(r.x, r.y+r.h-1, dim, "╰"+line+"╯")
	for j := 1; j < r.h-1; j++ {
		c.put(r.x, r.y+j, dim, "│")
		c.put(r.x+r.w-1, r.y+j, dim, "│")
	}
}

func readsText(t traffic) string {
	r, ok := t.rate.Get()
	if !ok {
		return "?"
	}
	return render.Rate(r) + " " + howMark(unit.HowEstimated)
}

// bar lays out label, bar and figure; the bar gets the remaining width.
func (m *Model) bar(c *canvas, x, y, width int, label, text string, draw func(x, w int)) {
	figure := 13
	if width < 30 {
		figure = 10
	}
	figure = max(figure, textWidth(text)) // all bars of a box end in the same column, if they can
	c.put(x, y, dim, label)
	if room := width - len(label) - figure - 1; room >= 3 {
		draw(x+len(label), room)
	}
	c.right(x+width, y, plain, text)
}

func cpuText(n window.Node) string {
	if n.CPUs.IsEmpty() {
		return "no CPUs"
	}
	return fmt.Sprintf("%s of %d", cpus(n.CPUBusy.V), n.CPUs.Len())
}

func cpuBar(c *canvas, n window.Node, x, y, w int) {
	busy, ok := n.CPUBusy.Get()
	if n.CPUs.IsEmpty() {
		return
	}
	shareBar(c, unit.OptOf(busy/float64(n.CPUs.Len()), ok), x, y, w)
}

// shareBar fills a part of w cells; an unknown share stays empty.
func shareBar(c *canvas, part unit.Opt[float64], x, y, w int) {
	v, ok := part.Get()
	if !ok {
		return
	}
	full := int(max(0, min(1, v))*float64(w) + 0.5)
	if v > 0 && full == 0 {
		full = 1
	}
	c.put(c.put(x, y, accent, strings.Repeat("█", full)), y, dim, strings.Repeat("░", w-full))
}

func memText(n window.Node) string {
	all, ok := n.Memory.Get()
	free, okFree := n.Free.Get()
	switch {
	case !ok:
		return "?"
	case all == 0:
		return "no memory"
	case !okFree:
		return "? of " + render.ShortBytes(all)
	}
	return render.ShortBytes(all-free) + " of " + render.ShortBytes(all)
}

// memBar stacks anonymous, file, other used, and free memory.
func memBar(c *canvas, n window.Node, x, y, w int) {
	all, ok := n.Memory.Get()
	free, okFree := n.Free.Get()
	if !ok || !okFree || all == 0 {
		return
	}
	anon, file := float64(n.Anon.Or(0)), float64(n.File.Or(0))
	used := float64(max(0, all-free))
	other := max(0, used-anon-file)
	kinds := []struct {
		glyph string
		s     style
	}{{"█", accent}, {"▓", second}, {"▒", plain}, {"·", dim}}
	for i, cells := range parts([]float64{anon, file, other, float64(max(0, free))}, w) {
		x = c.put(x, y, kinds[i].s, strings.Repeat(kinds[i].glyph, cells))
	}
}

func localText(t traffic, withRate bool) string {
	if !t.local.Known() {
		return "?"
	}
	text := percent(t.local) + howMark(unit.HowEstimated)
	if r, ok := t.rate.Get(); ok && withRate {
		text += " " + render.Rate(r)
	}
	return text
}

// distances is a node's row of the SLIT, or, if that is too long, its nearest
// nodes.
func distances(f Frame, id, width int) string {
	row := "distance"
	for _, n := range f.Window.Nodes {
		if d, ok := f.Machine.Distance(id, n.ID).Get(); ok {
			row += fmt.Sprintf(" %d", d)
		} else {
			row += " ?"
		}
	}
	if len(row) <= width {
		return row
	}
	var near []int
	best := -1
	for _, other := range f.Machine.Nearest(id) {
		d, ok := f.Machine.Distance(id, other).Get()
		if other == id || !ok || best >= 0 && d != best {
			continue
		}
		best = d
		near = append(near, other)
	}
	switch {
	case best < 0:
		return ""
	case len(near) == len(f.Machine.Nodes)-1:
		return fit(fmt.Sprintf("distance %d to all others", best), width, false)
	}
	return fit(fmt.Sprintf("nearest %v (%d)", set.FromNodes(near...), best), width, false)
}

// nodeLine is a node on one line.
func (m *Model) nodeLine(c *canvas, f Frame, i int, t traffic, x, y, width int) {
	n := f.Window.Nodes[i]
	c.right(x+3, y, strong, fmt.Sprint(n.ID))
	c.put(x+4, y, nodeStyle(i), string(nodeGlyph(n.ID)))
	left, third := x+6, (width-6)/3
	for k, part := range []struct {
		label, text string
		draw        func(x, w int)
	}{
		{"cpu ", cpuText(n), func(x, w int) { cpuBar(c, n, x, y, w) }},
		{"mem ", memText(n), func(x, w int) { memBar(c, n, x, y, w) }},
		{"loc ", localText(t, third >= 30), func(x, w int) { shareBar(c, t.local, x, y, w) }},
	} {
		at, end := left+k*third, left+(k+1)*third-2
		text := part.text
		if third < 16 {
			text = strings.ReplaceAll(text, " of ", "/")
			part.label = ""
		}
		c.put(at, y, dim, part.label)
		figure := max(textWidth(text), min(10, third/2))
		if room := end - at - len(part.label) - figure - 1; room >= 3 {
			part.draw(at+len(part.label), room)
		}
		c.right(end, y, plain, fit(text, max(1, end-at), false))
	}
}
