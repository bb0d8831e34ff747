// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// layout says where the columns are and how wide; a width of 0 means that there
// is no room.
type layout struct {
	name, service, bar, msr, bound, trend int
	x                                     struct{ name, service, cpu, cpuBar, pages, pagesBar, local, msr, bound, trend int }
}

// The widths of figures in render/field.
var (
	cpuWidth   = field.CPU.Width         // "12.3▾"
	localWidth = field.LocalAccess.Width // "100%M!"
)

const (
	pagesWidth = 5 // "9.9G"
	nameMin    = 14
	nameMax    = 44
	trendMin   = 6
	trendMax   = 60
)

// fitColumns gives every column the width that it needs, and the rest to the
// name and the trend.
func fitColumns(width int, services bool) layout {
	l := layout{bar: 8, msr: field.MSR.Width, bound: 8, trend: trendMin}
	switch {
	case width >= 160:
		l.bar, l.bound = 20, 12
	case width >= 110:
		l.bar, l.bound = 12, 10
	case width < 60:
		l.bar, l.msr, l.bound, l.trend = 0, 0, 0, 0
	case width < 76:
		l.bar, l.msr, l.bound = 6, 0, 0
	}
	if services && width >= 110 {
		l.service = 10 + width/50
	}
	free := width - 2 - l.place(0)
	l.name = max(nameMin, min(nameMax, free*3/5))
	if l.trend > 0 {
		l.trend = max(l.trend, min(trendMax, l.trend+free-l.name))
	}
	l.place(2)
	return l
}

// place puts the columns next to each other and returns where the last one
// ends.
func (l *layout) place(x int) int {
	for _, col := range []struct {
		at    *int
		width int
	}{
		{&l.x.name, l.name}, {&l.x.service, l.service}, {&l.x.cpu, cpuWidth}, {&l.x.cpuBar, l.bar}, {&l.x.pages, pagesWidth},
		{&l.x.pagesBar, l.bar}, {&l.x.local, localWidth}, {&l.x.msr, l.msr}, {&l.x.bound, l.bound}, {&l.x.trend, l.trend},
	} {
		*col.at = x
		if col.width > 0 {
			x += col.width + 1
		}
	}
	return x
}

// tableRows is how many rows the table needs, with its heading.
func (m *Model) tableRows(f Frame) int { return len(f.Window.Workloads) + 2 }

// table draws the workloads from y on, up to the line before bottom.
func (m *Model) table(c *canvas, f Frame, y, bottom int) {
	services := false
	for _, wl := range f.Window.Workloads {
		services = services || wl.Service != ""
	}
	l := fitColumns(c.w, services)
	all := m.rows()
	if len(all)+3 < bottom-y && bottom-y > 8 {
		y++ // an empty line
	}
	m.heading(c, l, y, len(all), len(f.Window.Workloads))
	room := bottom - y - 1
	if room < 1 {
		return
	}
	if len(all) == 0 {
		c.put(2, y+1, dim, m.noRows(f))
		return
	}
	at := max(0, min(m.row, len(all)-1))
	m.top = max(0, min(m.top, len(all)-room))
	m.top = max(min(m.top, at), at-room+1)
	for i := m.top; i < len(all) && i-m.top < room; i++ {
		m.tableRow(c, f, l, y+1+i-m.top, all[i])
	}
}

func (m *Model) noRows(f Frame) string {
	if m.filter != "" {
		return fmt.Sprintf("none of %s has %q in its name: esc clears the filter", render.Count(len(f.Window.Workloads), "workload"), m.filter)
	}
	return "no workload: no cgroup with a process was found"
}

func (m *Model) heading(c *canvas, l layout, y, shown, all int) {
	name := "WORKLOAD" + m.order.arrow(byName)
	if m.filter != "" {
		name += fmt.Sprintf(" /%s %d of %d", m.filter, shown, all)
	}
	c.put(l.x.name, y, dim, fit(name, l.name, false))
	if l.service > 0 {
		c.put(l.x.service, y, dim, "SERVICE")
	}
	c.right(l.x.cpu+cpuWidth, y, dim, field.CPU.Head+m.order.arrow(byCPU))
	c.right(l.x.pages+pagesWidth, y, dim, "MEM"+m.order.arrow(byPages))
	for _, bar := range []struct {
		x    int
		text string
	}{{l.x.cpuBar, field.CPU.Head}, {l.x.pagesBar, "MEM"}} {
		if l.bar >= 12 {
			c.put(bar.x, y, dim, fit(bar.text+" BY NODE", l.bar, false))
		} else if l.bar > 0 {
			c.put(bar.x, y, dim, fit("BY NODE", l.bar, false))
		}
	}
	c.right(l.x.local+localWidth, y, dim, field.LocalAccess.Head+m.order.arrow(byLocal))
	if l.msr > 0 {
		c.right(l.x.msr+l.msr, y, dim, field.MSR.Head+m.order.arrow(byMSR))
	}
	if l.bound > 0 {
		c.put(l.x.bound, y, dim, "BOUND")
	}
	trend := "TREND local"
	if m.byCPU {
		trend = "TREND CPU"
	}
	if l.trend > 0 {
		c.put(l.x.trend, y, dim, fit(trend, l.trend, false))
	}
}

func (m *Model) tableRow(c *canvas, f Frame, l layout, y int, r row) {
	w := f.Window
	name := plain
	if r.wl.ID == m.selected && !m.still {
		c.put(0, y, accent, "▸")
		name = strong
	}
	c.put(l.x.name, y, name, fit(clean(nameOf(r.wl)), l.name, true))
	if l.service > 0 {
		c.put(l.x.service, y, dim, fit(clean(r.wl.Service), l.service, false))
	}
	c.right(l.x.cpu+cpuWidth, y, unknownDim(r.wl.CPU.Known()), fit(cpus(r.wl.CPU.V)+guessMark(r.wl.CPU.How), cpuWidth, false))
	pages, ok := r.wl.PagesByNode()
	text := "?"
	if ok {
		var sum unit.Bytes
		for _, b := range pages {
			sum += b
		}
		text = render.ShortBytes(sum)
	}
	c.right(l.x.pages+pagesWidth, y, unknownDim(ok), text)
	cpu, mem := shares(r.wl)
	stack(c, f, cpu, l.x.cpuBar, y, l.bar)
	stack(c, f, mem, l.x.pagesBar, y, l.bar)
	m.localCell(c, l.x.local, y, r)
	if l.msr > 0 {
		c.right(l.x.msr+l.msr, y, unknownDim(r.features.MSR.Known()), percent(ratio(r.features.MSR))+howMark(r.features.MSR.How))
	}
	if l.bound > 0 {
		text, s := binding(r.wl, w)
		c.put(l.x.bound, y, s, fit(text, l.bound, false))
	}
	if l.trend > 0 {
		c.put(l.x.trend, y, second, m.trend(r.wl.ID, l.trend))
	}
}

func unknownDim(known bool) style {
	if known {
		return plain
	}
	return dim
}

// localCell is "57%M!": the figure, how it is known, and whether it is below
// the target.
func (m *Model) localCell(c *canvas, x, y int, r row) {
	v := ratio(r.features.LocalAccessRatio)
	target, has := r.wl.Target.Get()
	text, s, low := percent(v)+howMark(r.features.LocalAccessRatio.How), unknownDim(v.Known()), ""
	if has && v.Known() && v.Or(0) < float64(target) {
		s, low = warn, "!"
	}
	c.right(x+localWidth-1, y, s, text)
	c.put(x+localWidth-1, y, s, low)
}

// stack is a bar of shares by node: each cell has its node's glyph and colour.
func stack(c *canvas, f Frame, by []float64, x, y, width int) {
	if width == 0 {
		return
	}
	if by == nil {
		c.put(x, y, dim, "?")
		return
	}
	for i, cells := range parts(by, width) {
		glyph := string(nodeGlyph(f.Window.Nodes[i].ID))
		x = c.put(x, y, nodeStyle(i), strings.Repeat(glyph, cells))
	}
}

// trend is the history of the local ratio, from 0 to 1, or of CPU, from 0 to
// its maximum.
func (m *Model) trend(id string, width int) string {
	if m.byCPU {
		values := m.time.history(id, width, cpuUse)
		return spark(values, largest(values))
	}
	return spark(m.time.history(id, width, localRatio), 1)
}

// nameOf is what a person knows a workload by: a container's path is an id.
func nameOf(wl window.Workload) string {
	if wl.Labels.Container != "" {
		return wl.Labels.String()
	}
	return wl.ID
}
