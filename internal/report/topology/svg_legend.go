// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"homenode/internal/machine"

	"homenode/internal/render"
)

// sign is an entry of the legend.
type sign struct {
	w    float64
	draw func(c *canvas, x, y float64)
	text string
}

// drawLegend explains what the picture has, and no more. It returns its height.
func (f facts) drawLegend(c *canvas, y float64) float64 {
	x, top := pageMargin, y
	for _, s := range f.signs() {
		wide := s.w + 8 + render.TextWidth(s.text, 11) + 22
		if x > pageMargin && x+wide > pageMargin+innerWidth {
			x, y = pageMargin, y+24
		}
		s.draw(c, x, y)
		c.text(x+s.w+8, y+12, "small", s.text)
		x += wide
	}
	return y + 24 - top
}

func (f facts) signs() []sign {
	var list []sign
	if len(f.Nodes) > 1 {
		list = append(list, sign{w: 40, text: "memory, against the largest node's", draw: func(c *canvas, x, y float64) {
			c.Rect(x, y+5, 40, 6, "track", 3)
			c.Rect(x, y+5, 26, 6, "fill", 2)
		}})
	}
	square := func(w float64, class, text string) {
		list = append(list, sign{w: w, text: text, draw: func(c *canvas, x, y float64) { c.Rect(x, y, w, 16, class, 3) }})
	}
	if f.threads.Or(1) > 1 {
		square(24, "core", "a core with its threads' CPU numbers")
	} else {
		square(24, "core", "a CPU by its number")
	}
	for i, k := range f.Kinds {
		square(24, "core"+f.kindClass(k.CPUs), "kind: "+kindName(k))
		if i == 2 {
			break
		}
	}
	if f.sharedL2() {
		square(24, "l2", "share an L2")
	}
	if len(f.LLCs) > 0 {
		square(24, "llc", "share a last-level cache")
	}
	if !f.offline.IsEmpty() {
		square(24, "core off", "offline")
	}
	if !f.noCPUs.IsEmpty() {
		square(24, "node bare", "node without CPUs")
	}
	return append(list, f.deviceSigns()...)
}

func (f facts) sharedL2() bool {
	for _, c := range f.L2s {
		first, _ := c.CPUs.First()
		if cpu, ok := f.CPU(first); ok && c.CPUs.Len() > 1 {
			core, known := cpu.Core.Get()
			if !known || core >= len(f.Cores) || !c.CPUs.SubsetOf(f.Cores[core]) {
				return true
			}
		}
	}
	return false
}

func (f facts) deviceSigns() []sign {
	var list []sign
	for _, class := range []machine.DeviceClass{machine.Network, machine.Storage, machine.GPU, machine.Accelerator, machine.CXLMemory} {
		has := false
		for _, d := range f.Devices {
			has = has || d.Class == class
		}
		if !has {
			continue
		}
		kind, text := kinds[class], string(class)
		if class == machine.GPU {
			text = "graphics or GPU"
		}
		list = append(list, sign{w: kindWidth(kind), text: text, draw: func(c *canvas, x, y float64) {
			c.Rect(x, y, kindWidth(kind), 16, string(class), 3)
			c.middle(x+kindWidth(kind)/2, y+11.5, "mark", kind)
		}})
	}
	return list
}
