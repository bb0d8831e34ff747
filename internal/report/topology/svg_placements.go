// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/render"
)

// Geometry of a placement's picture: a card for each, a box for each node, a square for
// each CPU.
const (
	placeCPU  = 9.0
	placeRow  = 12 // CPUs in a row of a node
	placeHead = 38.0
	placeName = 88.0 // "node 13: A12" fits
)

// PlacementsSVG draws each placement on the machine: CPUs in use are filled.
func PlacementsSVG(w io.Writer, m machine.Machine, l placement.List) error {
	f := newFacts(m)
	var c canvas
	c.text(pageMargin, pageMargin+20, "h1", fmt.Sprintf("%s of %s", render.Count(len(l.Placements), "important placement"), render.Count(l.VCPUs, "vCPU")))
	c.text(pageMargin, pageMargin+40, "sub", f.Origin+"; filled: the example's CPUs; boxes are nodes with CPUs")
	columns, wide, high := f.placeGrid()
	x, y := pageMargin, pageMargin+56
	for i, one := range l.Placements {
		f.drawPlacement(&c, x, y, wide, high, i+1, one)
		if x += wide + gap; (i+1)%columns == 0 {
			x, y = pageMargin, y+high+gap
		}
	}
	if len(l.Placements)%columns != 0 {
		y += high + gap
	}
	if _, err := io.WriteString(w, page(f, c.String(), y+pageMargin)); err != nil {
		return fmt.Errorf("write placements: %w", err)
	}
	return nil
}

// placeGrid is how many cards are side by side, and how large each is.
func (f facts) placeGrid() (columns int, wide, high float64) {
	most, nodes := 1, 0
	for _, n := range f.Nodes {
		if !n.CPUs.IsEmpty() {
			most, nodes = max(most, n.CPUs.Len()), nodes+1
		}
	}
	across := min(4, nodes)
	wide = float64(across)*(placeNodeWidth(most)+8) + 12
	rows := (nodes + across - 1) / max(1, across)
	high = placeHead + float64(rows)*(placeNodeHeight(most)+8) + 6
	columns = max(1, int((innerWidth+gap)/(wide+gap)))
	return columns, wide, high
}

func placeNodeWidth(cpus int) float64 {
	return max(placeName, float64(min(cpus, placeRow))*placeCPU+8)
}

func placeNodeHeight(cpus int) float64 {
	return float64((cpus+placeRow-1)/placeRow)*placeCPU + 22
}

func (f facts) drawPlacement(c *canvas, x, y, wide, high float64, number int, one placement.Placement) {
	var scores []string
	for _, s := range one.Scores {
		scores = append(scores, s.Concern+" "+scoreText(s))
	}
	f.drawCard(c, x, y, wide, high, drawnCard{
		title: fmt.Sprintf("%d: nodes %s", number, one.Nodes), below: strings.Join(scores, ", "),
		head: func(node int) string { return fmt.Sprintf("node %d", node) },
		used: one.CPUs.Has,
	})
}

// drawnCard is the machine's nodes with some CPUs filled.
type drawnCard struct {
	title, below string
	head         func(node int) string
	used         func(cpu int) bool
}

func (f facts) drawCard(c *canvas, x, y, wide, high float64, card drawnCard) {
	c.Rect(x, y, wide, high, "card", 4)
	c.text(x+8, y+16, "name", render.FitText(card.title, 13, wide-12))
	c.text(x+8, y+31, "small", render.FitText(card.below, 11, wide-12))
	most, at := 1, 0
	for _, n := range f.Nodes {
		most = max(most, n.CPUs.Len())
	}
	for _, n := range f.Nodes {
		if n.CPUs.IsEmpty() {
			continue
		}
		nx := x + 8 + float64(at%4)*(placeNodeWidth(most)+8)
		ny := y + placeHead + float64(at/4)*(placeNodeHeight(most)+8)
		at++
		c.Rect(nx, ny, placeNodeWidth(most), placeNodeHeight(most), "node", 2)
		c.text(nx+4, ny+12, "small", render.FitText(card.head(n.ID), 11, placeNodeWidth(most)-4))
		for i, cpu := range n.CPUs.IDs() {
			class := "core"
			if card.used(cpu) {
				class = "fill"
			}
			c.Rect(nx+4+float64(i%placeRow)*placeCPU, ny+17+float64(i/placeRow)*placeCPU, placeCPU-2, placeCPU-2, class, 1)
		}
	}
}
