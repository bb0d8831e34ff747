// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// nodeBox is a node's drawing: a head, tags, CPUs and devices, from top to bottom.
type nodeBox struct {
	node     machine.Node
	bare     bool   // no CPUs
	inside   string // its package, where no frame says so
	notes    []string
	cpus     *box
	below    []*nodeBox // nodes without CPUs that are next to this one alone
	devices  []machine.Device
	w, h     float64
	deviceAt float64
}

// frame is a package with its nodes, or the nodes of no one package.
type frame struct {
	label string
	nodes []*nodeBox
}

const (
	nodePad    = 10.0
	headHeight = 34.0 // name, memory and its bar
	noteHeight = 16.0
	tagHeight  = 18.0
	framePad   = 10.0
	frameTop   = 28.0
	maxTags    = 8
	stackGap   = 6.0
)

// drawNodes draws all nodes below y and returns the height it took.
func (f facts) drawNodes(c *canvas, y float64) float64 {
	frames := f.frames()
	columns, perRow := grid(frames)
	pads := 0.0
	if frames[0].label != "" {
		pads = 2 * framePad
	}
	frameWidth := (innerWidth - gap*float64(perRow-1)) / float64(perRow)
	nodeWidth := (frameWidth - pads - gap*float64(columns-1)) / float64(columns)
	if len(f.Nodes) == 1 && f.online.Len() <= 16 {
		nodeWidth /= 2
	}
	f.sizeNodes(frames, nodeWidth)
	top := y
	for i := 0; i < len(frames); i += perRow {
		row := frames[i:min(i+perRow, len(frames))]
		if i > 0 {
			y += gap
		}
		y += drawFrames(c, row, y, frameWidth, columns, f.mostMemory())
	}
	return y - top
}

// frames sorts the nodes by package (1: the only one that a node's CPUs are in).
// A node without CPUs stands with its one nearest node that has some (2).
func (f facts) frames() []frame {
	at := map[int]int{} // a node's package
	for _, n := range f.Nodes {
		if ids := f.packagesOf(n); len(ids) == 1 { // 1
			at[n.ID] = ids[0]
		}
	}
	for id := range f.noCPUs.All() {
		if home, ok := f.nearestCPUs(id); ok { // 2
			if p, ok := at[home]; ok {
				at[id] = p
			}
		}
	}
	if len(f.Nodes) == 1 || len(at) == 0 {
		return []frame{{nodes: f.stack(f.nodeBoxes(f.Nodes))}}
	}
	by := make([][]machine.Node, len(f.Packages)+1)
	for _, n := range f.Nodes {
		p, ok := at[n.ID]
		if !ok {
			p = len(f.Packages)
		}
		by[p] = append(by[p], n)
	}
	var frames []frame
	for p, nodes := range by {
		if len(nodes) == 0 {
			continue
		}
		label := "package " + strconv.Itoa(p)
		if p == len(f.Packages) {
			label = "of no single package"
		}
		slices.SortStableFunc(nodes, func(a, b machine.Node) int { return rank(a) - rank(b) })
		frames = append(frames, frame{label, f.stack(f.nodeBoxes(nodes))})
	}
	return flatten(frames)
}

// stack puts a node without CPUs below the one that it is next to, as memory of that one:
// beside it, its box would be as high and empty.
func (f facts) stack(nodes []*nodeBox) []*nodeBox {
	var tops []*nodeBox
	for _, n := range nodes {
		home, ok := f.nearestCPUs(n.node.ID)
		at := slices.IndexFunc(tops, func(top *nodeBox) bool { return ok && n.bare && top.node.ID == home })
		if at < 0 {
			tops = append(tops, n)
			continue
		}
		tops[at].below = append(tops[at].below, n)
	}
	return tops
}

// all is a box with those below it.
func (n *nodeBox) all() []*nodeBox { return append([]*nodeBox{n}, n.below...) }

// rest is the height of what is below the box.
func (n *nodeBox) rest() float64 {
	high := 0.0
	for _, b := range n.below {
		high += stackGap + b.h
	}
	return high
}

// flatten takes the frames away where each would have one node only.
func flatten(frames []frame) []frame {
	var one frame
	if slices.ContainsFunc(frames, func(fr frame) bool { return len(fr.nodes) > 1 }) {
		return frames
	}
	for _, fr := range frames {
		fr.nodes[0].inside = fr.label
		one.nodes = append(one.nodes, fr.nodes[0])
	}
	slices.SortFunc(one.nodes, func(a, b *nodeBox) int { return a.node.ID - b.node.ID })
	return []frame{one}
}

// rank puts nodes with CPUs first.
func rank(n machine.Node) int {
	if n.CPUs.IsEmpty() {
		return 1
	}
	return 0
}

// nearestCPUs is the node with CPUs that a node without is next to, if it is one.
func (f facts) nearestCPUs(id int) (int, bool) {
	near, _ := f.NearCPUs(id)
	nodes := f.nodesOf(near)
	home, ok := nodes.First()
	return home, ok && nodes.Len() == 1
}

func (f facts) nodeBoxes(nodes []machine.Node) []*nodeBox {
	var boxes []*nodeBox
	for _, n := range nodes {
		boxes = append(boxes, &nodeBox{node: n, bare: n.CPUs.IsEmpty(), notes: f.notes(n), devices: f.devicesOf(unit.Some(n.ID))})
	}
	return boxes
}

// notes are what a node's box says besides its memory and CPUs.
func (f facts) notes(n machine.Node) []string {
	var notes []string
	if n.CPUs.IsEmpty() {
		note := "no CPUs"
		if near, how := f.NearCPUs(n.ID); how != machine.NearnessUnset {
			nodes := f.nodesOf(near)
			note += fmt.Sprintf("; next to %s %s", render.Plural(nodes.Len(), "node"), nodes)
		}
		notes = append(notes, note)
	}
	for _, p := range n.HugePages {
		if p.Count.Or(0) > 0 {
			notes = append(notes, p.Count.String()+" huge pages of "+p.Size.String())
		}
	}
	if t, ok := n.Tier.Get(); ok {
		notes = append(notes, "memory tier "+strconv.Itoa(t))
	}
	for _, c := range n.SideCaches {
		notes = append(notes, fmt.Sprintf("memory-side cache %s", c.Size.String()))
	}
	return notes
}

// grid chooses how many nodes stand beside each other in a frame, and how many
// frames in a row: four nodes in all, or six where there are many small ones.
func grid(frames []frame) (columns, perRow int) {
	most, cpus, nodes := 0, 0, 0
	for _, fr := range frames {
		most, nodes = max(most, len(fr.nodes)), nodes+len(fr.nodes)
		for _, n := range fr.nodes {
			cpus = max(cpus, n.node.CPUs.Len())
		}
	}
	across := 4
	if nodes > 12 && cpus <= 16 {
		across = 6
	}
	if len(frames) == 1 {
		if most == 5 || most == 6 {
			return 3, 1
		}
		return min(most, across), 1
	}
	best := 0
	for _, n := range []int{2, 3, 4, 1} {
		if rows := gridRows(frames, n, max(1, across/n)); n <= most && (best == 0 || rows < best) {
			columns, best = n, rows
		}
	}
	return columns, min(len(frames), max(1, across/columns))
}

// gridRows is how many nodes would stand above each other.
func gridRows(frames []frame, columns, perRow int) int {
	rows := 0
	for i := 0; i < len(frames); i += perRow {
		most := 0
		for _, fr := range frames[i:min(i+perRow, len(frames))] {
			most = max(most, (len(fr.nodes)+columns-1)/columns)
		}
		rows += most
	}
	return rows
}

// sizeNodes lays out what is in the nodes, as large as leaves the page a page.
func (f facts) sizeNodes(frames []frame, width float64) {
	const enough = 190.0 // high, for a node's CPUs
	for _, scale := range []float64{2, 1.6, 1.3, 1} {
		size := f.cell(scale)
		wide, high := f.layOutAll(frames, width, size)
		if high > enough && scale > 1 {
			continue
		}
		if wide > 0 { // fill the rows, unless that makes more of them
			wider := cell{size.w * min((width-2*nodePad)/wide, 1.5) * 0.99, size.h}
			if _, higher := f.layOutAll(frames, width, wider); higher > high {
				f.layOutAll(frames, width, size)
			}
		}
		return
	}
}

// layOutAll returns the largest width and height that the CPUs of a node take.
func (f facts) layOutAll(frames []frame, width float64, size cell) (wide, high float64) {
	for _, fr := range frames {
		for _, top := range fr.nodes {
			for _, n := range top.all() {
				f.layOut(n, width, size)
				wide, high = max(wide, n.cpus.w), max(high, n.cpus.h)
			}
		}
	}
	return wide, high
}

// cell has room for the largest CPU id.
func (f facts) cell(scale float64) cell {
	last := 0
	if len(f.CPUs) > 0 {
		last = f.CPUs[len(f.CPUs)-1].ID
	}
	wide := max(22, render.TextWidth(strconv.Itoa(last), 11)+8)
	return cell{wide * scale, 20 + 8*(scale-1)}
}

func (f facts) layOut(n *nodeBox, width float64, size cell) {
	n.cpus = &box{gap: 6, kids: f.packageBoxes(n.node, size)}
	n.cpus.kids = append(n.cpus.kids, offlineBoxes(f.offlineOf(n.node.ID), size)...)
	n.cpus.arrange(width - 2*nodePad)
	n.w = width
	if n.inside != "" && n.insideAt()+render.TextWidth(n.inside, 11)+8 > width-nodePad-render.TextWidth(memory(n.node), 13)*1.1 {
		n.notes, n.inside = append([]string{n.inside}, n.notes...), "" // there is no room in the first line
	}
	n.h = nodePad + headHeight + noteHeight*float64(len(n.notes)) + n.cpus.h
	n.deviceAt = n.h
	if len(n.devices) > 0 {
		n.deviceAt += 8
		n.h = n.deviceAt + tagRows(n.devices, width-2*nodePad)*(tagHeight+4) - 4
	}
	n.h += nodePad
	if n.bare && len(n.devices) == 0 {
		n.h -= 6 // below the last note there is enough
	}
}

// packageBoxes groups a node's CPUs by package where it spans a few. More than a
// few are cores that firmware calls packages (POWER7).
func (f facts) packageBoxes(n machine.Node, size cell) []*box {
	packages := f.packagesOf(n)
	if len(packages) < 2 || len(packages) > 4 {
		return f.cpuBoxes(n.CPUs, size)
	}
	var boxes []*box
	rest := n.CPUs
	for _, p := range packages {
		here := f.Packages[p].Intersect(n.CPUs)
		rest = rest.Minus(here)
		boxes = append(boxes, &box{class: "group", round: 4, pad: 6, gap: 6, label: "package " + strconv.Itoa(p), kids: f.cpuBoxes(here, size)})
	}
	return append(boxes, f.cpuBoxes(rest, size)...)
}

// insideAt is where the package stands, behind the node's name.
func (n *nodeBox) insideAt() float64 {
	return nodePad + render.TextWidth("node "+strconv.Itoa(n.node.ID), 13)*1.1 + 8
}

func (f facts) offlineOf(node int) set.CPUSet {
	var ids []int
	for _, c := range f.CPUs {
		if c.Node == unit.Some(node) && !c.Online {
			ids = append(ids, c.ID)
		}
	}
	return set.FromCPUs(ids...)
}

// mostMemory is what a full bar stands for.
func (f facts) mostMemory() unit.Bytes {
	var most unit.Bytes
	for _, n := range f.Nodes {
		most = max(most, n.Memory.Or(0))
	}
	return most
}

// drawFrames draws one row of packages and returns its height. All nodes of a
// row are equally high.
func drawFrames(c *canvas, row []frame, y, width float64, columns int, most unit.Bytes) float64 {
	high, lines := 0.0, 0
	for _, fr := range row {
		lines = max(lines, (len(fr.nodes)+columns-1)/columns)
	}
	heights := make([]float64, lines)
	for _, fr := range row {
		for i, n := range fr.nodes {
			heights[i/columns] = max(heights[i/columns], n.h+n.rest())
		}
	}
	for _, h := range heights {
		high += h + gap
	}
	high -= gap
	top, pad := 0.0, 0.0
	if row[0].label != "" {
		top, pad = frameTop, framePad
	}
	for i, fr := range row {
		x := pageMargin + float64(i)*(width+gap)
		if fr.label != "" {
			c.Rect(x, y, width, top+high+pad, "frame", 8)
			c.text(x+pad, y+19, "h2", fr.label)
		}
		drawNodesOf(c, fr.nodes, x+pad, y+top, columns, heights, most)
	}
	return top + high + pad
}

func drawNodesOf(c *canvas, nodes []*nodeBox, x, y float64, columns int, heights []float64, most unit.Bytes) {
	for i, n := range nodes {
		if i > 0 && i%columns == 0 {
			y += heights[i/columns-1] + gap
		}
		if !n.bare { // an empty box says less than a small one
			n.h = heights[i/columns] - n.rest()
		}
		at := y
		for _, b := range n.all() {
			b.draw(c, x+float64(i%columns)*(n.w+gap), at, most)
			at += b.h + stackGap
		}
	}
}

func (n *nodeBox) draw(c *canvas, x, y float64, most unit.Bytes) {
	class, bar := "node", "fill"
	if n.bare {
		class, bar = "node bare", "fill bare"
	}
	c.Rect(x, y, n.w, n.h, class, 6)
	in := n.w - 2*nodePad
	c.text(x+nodePad, y+20, "name", "node "+strconv.Itoa(n.node.ID))
	if n.inside != "" {
		c.text(x+n.insideAt(), y+20, "small", n.inside)
	}
	c.right(x+n.w-nodePad, y+20, "size", memory(n.node))
	c.Rect(x+nodePad, y+28, in, 6, "track", 3)
	if b := n.node.Memory.Or(0); b > 0 && most > 0 {
		c.Rect(x+nodePad, y+28, max(2, in*float64(b)/float64(most)), 6, bar, 2)
	}
	at := y + nodePad + headHeight
	for _, note := range n.notes {
		c.text(x+nodePad, at+4, "small", render.FitText(note, 11, in))
		at += noteHeight
	}
	n.cpus.draw(c, x+nodePad, at)
	drawTags(c, n.devices, x+nodePad, y+n.deviceAt, in)
}

func memory(n machine.Node) string {
	if n.Memory == unit.Some(unit.Bytes(0)) {
		return "no memory"
	}
	return memoryOf(n.Memory)
}
