// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"strconv"

	"homenode/internal/render"
	"homenode/internal/set"
)

// box is a rectangle with others in it. Its place is relative to its parent's.
type box struct {
	x, y, w, h float64
	class      string
	round      float64
	label      string // above the kids; no room is made for an empty one
	pad, gap   float64
	kids       []*box
	cpus       []int // of a core, instead of kids
	off        bool  // the CPUs are offline
	cell       cell  // of a core
}

// cell is the size of a CPU's number.
type cell struct{ w, h float64 }

const labelHeight = 15.0

// arrange places the kids in rows no wider than width allows, and sizes the box
// around them.
func (b *box) arrange(width float64) {
	if b.cpus != nil {
		b.arrangeCore(width)
		return
	}
	for _, k := range b.kids {
		k.arrange(width - 2*b.pad)
	}
	w, h := flow(b.kids, even(b.kids, width-2*b.pad, b.gap), b.gap)
	top := b.pad
	if b.label != "" {
		top += labelHeight - b.pad/2
		w = max(w, min(render.TextWidth(b.label, 11), width-2*b.pad))
	}
	for _, k := range b.kids {
		k.x += b.pad
		k.y += top
	}
	b.w, b.h = w+2*b.pad, top+h+b.pad
}

// even returns a width, not above the one given, at which boxes of one size come
// in rows of equal length, where that takes two rows more at most.
func even(boxes []*box, width, gap float64) float64 {
	n := len(boxes)
	if n < 4 || boxes[0].w <= 0 {
		return width
	}
	for _, b := range boxes {
		if b.w != boxes[0].w {
			return width
		}
	}
	step := boxes[0].w + gap
	fits := max(1, int((width+gap+0.01)/step))
	rows := (n + fits - 1) / fits
	for columns := min(fits, n); columns > 1; columns-- {
		if n%columns == 0 && n/columns <= rows+2 {
			return float64(columns)*step - gap + 0.01
		}
	}
	return width
}

func (b *box) arrangeCore(width float64) {
	columns := min(len(b.cpus), max(1, int(width/b.cell.w)))
	rows := (len(b.cpus) + columns - 1) / columns
	b.w, b.h = float64(columns)*b.cell.w, float64(rows)*b.cell.h
}

// flow places boxes from left to right, and below where there is no room.
func flow(boxes []*box, width, gap float64) (w, h float64) {
	x, y, row := 0.0, 0.0, 0.0
	for _, b := range boxes {
		if x > 0 && x+b.w > width+0.01 {
			x, y, row = 0, y+row+gap, 0
		}
		b.x, b.y = x, y
		x += b.w + gap
		row = max(row, b.h)
		w = max(w, b.x+b.w)
	}
	return w, y + row
}

func (b *box) draw(c *canvas, x, y float64) {
	x, y = x+b.x, y+b.y
	if b.class != "" {
		c.Rect(x, y, b.w, b.h, b.class, b.round)
	}
	if b.label != "" {
		c.text(x+b.pad, y+labelHeight-4, "small", render.FitText(b.label, 11, b.w-b.pad+2))
	}
	for _, k := range b.kids {
		k.draw(c, x, y)
	}
	b.drawCPUs(c, x, y)
}

func (b *box) drawCPUs(c *canvas, x, y float64) {
	class := "cpu"
	if b.off {
		class = "cpu off"
	}
	columns := max(1, int(b.w/b.cell.w+0.01))
	for i, id := range b.cpus {
		cx, cy := x+float64(i%columns)*b.cell.w, y+float64(i/columns)*b.cell.h
		if i%columns > 0 {
			c.Line(cx, cy+2, cx, cy+b.cell.h-2, "part")
		}
		c.middle(cx+b.cell.w/2, cy+b.cell.h/2+4, class, strconv.Itoa(id))
	}
}

// cpuBoxes draws these CPUs as caches with cores in them.
func (f facts) cpuBoxes(cpus set.CPUSet, size cell) []*box {
	groups := f.groupBy(cpus, func(i int) (int, bool) { return f.CPUs[i].LLC.Get() })
	labelled := f.labelsFit(groups)
	var boxes []*box
	for _, g := range groups {
		cores := f.l2Boxes(g.cpus, size)
		if !g.known {
			boxes = append(boxes, cores...)
			continue
		}
		llc := &box{class: "llc", round: 4, pad: 4, gap: 4, kids: cores}
		if labelled {
			llc.label = f.llcLabel(g.index, g.cpus)
		}
		boxes = append(boxes, llc)
	}
	return boxes
}

// labelsFit says that no cache is too small for its label: a label on each of
// many cores says less than the line below the headline.
func (f facts) labelsFit(groups []group) bool {
	for _, g := range groups {
		cores := len(f.groupBy(g.cpus, func(i int) (int, bool) { return f.CPUs[i].Core.Get() }))
		if g.known && len(groups) > 2 && (cores < 2 || g.cpus.Len() < 4) {
			return false
		}
	}
	return true
}

func (f facts) llcLabel(i int, here set.CPUSet) string {
	llc := f.LLCs[i]
	label := "L" + strconv.Itoa(llc.Level) + " " + cacheSize(llc.Size)
	if others := f.nodesOf(llc.CPUs.Minus(here)); !others.IsEmpty() {
		label += ", shared with node " + others.String()
	}
	return label
}

// l2Boxes draws an outline around cores that share an L2, and none around one
// that has its own.
func (f facts) l2Boxes(cpus set.CPUSet, size cell) []*box {
	var boxes []*box
	for _, g := range f.groupBy(cpus, func(i int) (int, bool) { return f.CPUs[i].L2.Get() }) {
		cores := f.coreBoxes(g.cpus, size)
		if g.known && len(cores) > 1 {
			cores = []*box{{class: "l2", round: 3, pad: 3, gap: 3, kids: cores}}
		}
		boxes = append(boxes, cores...)
	}
	return boxes
}

func (f facts) coreBoxes(cpus set.CPUSet, size cell) []*box {
	var boxes []*box
	for _, g := range f.groupBy(cpus, func(i int) (int, bool) { return f.CPUs[i].Core.Get() }) {
		if g.known {
			boxes = append(boxes, &box{class: "core" + f.kindClass(g.cpus), round: 2, cpus: g.cpus.IDs(), cell: size})
			continue
		}
		for id := range g.cpus.All() {
			boxes = append(boxes, &box{class: "core" + f.kindClass(set.FromCPUs(id)), round: 2, cpus: []int{id}, cell: size})
		}
	}
	return boxes
}

// kindClass tells the cores of a hybrid machine's further kinds from those of the first.
func (f facts) kindClass(cpus set.CPUSet) string {
	for i, k := range f.Kinds {
		if i > 0 && cpus.Overlaps(k.CPUs) {
			return " k" + strconv.Itoa(min(i, 2))
		}
	}
	return ""
}

// offlineBoxes are CPUs of which no more is known than that they exist.
func offlineBoxes(cpus set.CPUSet, size cell) []*box {
	var boxes []*box
	for id := range cpus.All() {
		boxes = append(boxes, &box{class: "core off", round: 2, cpus: []int{id}, cell: size, off: true})
	}
	return boxes
}

// group is some CPUs with the same index into one of the machine's slices; all
// those whose index is unknown are one group.
type group struct {
	index int
	known bool
	cpus  set.CPUSet
}

// groupBy sorts CPUs into groups, in the order of their lowest CPU.
func (f facts) groupBy(cpus set.CPUSet, index func(i int) (int, bool)) []group {
	type key struct {
		index int
		known bool
	}
	ids := map[key][]int{}
	var order []key
	for i, c := range f.CPUs {
		if !cpus.Has(c.ID) {
			continue
		}
		n, ok := index(i)
		k := key{n, ok}
		if ids[k] == nil {
			order = append(order, k)
		}
		ids[k] = append(ids[k], c.ID)
	}
	var groups []group
	for _, k := range order {
		groups = append(groups, group{k.index, k.known, set.FromCPUs(ids[k]...)})
	}
	return groups
}
