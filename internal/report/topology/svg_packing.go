// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"

	"homenode/internal/render"
)

// SVG draws a card for each policy: the nodes, the CPUs that containers have, and whose they
// are. Unpinned containers have no CPUs of their own.
func (k Packing) SVG(w io.Writer) error {
	f := newFacts(k.m)
	var c canvas
	c.text(pageMargin, pageMargin+20, "h1", "Packings of containers")
	c.text(pageMargin, pageMargin+40, "sub", f.Origin+"; filled: a container's CPUs; boxes are nodes with CPUs")
	y := pageMargin + 56
	for i, one := range k.Containers {
		c.text(pageMargin, y+14, "small", render.FitText(fmt.Sprintf("%s: %s, %d vCPUs, goal %s", letter(i), one.Name, one.VCPUs, render.Number(one.Goal)), 11, innerWidth))
		y += 16
	}
	columns, wide, high := f.placeGrid()
	x := pageMargin
	y += 8
	for i, one := range k.Policies {
		f.drawPacking(&c, x, y, wide, high, one)
		if x += wide + gap; (i+1)%columns == 0 {
			x, y = pageMargin, y+high+gap
		}
	}
	if len(k.Policies)%columns != 0 {
		y += high + gap
	}
	if _, err := io.WriteString(w, page(f, c.String(), y+pageMargin)); err != nil {
		return fmt.Errorf("write packing: %w", err)
	}
	return nil
}

func (f facts) drawPacking(c *canvas, x, y, wide, high float64, one PackedPolicy) {
	card := drawnCard{
		title: one.Policy,
		below: fmt.Sprintf("%d packed: %d meet, %d miss, %d unknown", one.Packed, one.Meet, one.Miss, one.Unknown),
		used:  func(cpu int) bool { return one.has(cpu) },
		head: func(node int) string {
			for _, o := range one.Placed {
				if o.Pinned && o.Nodes.Has(node) {
					return fmt.Sprintf("node %d: %s", node, o.label())
				}
			}
			return fmt.Sprintf("node %d", node)
		},
	}
	if len(one.Placed) > 0 && !one.Placed[0].Pinned {
		card.title += " (unpinned)"
	}
	f.drawCard(c, x, y, wide, high, card)
}

func (o PackedPolicy) has(cpu int) bool {
	for _, one := range o.Placed {
		if one.Pinned && one.CPUs.Has(cpu) {
			return true
		}
	}
	return false
}
