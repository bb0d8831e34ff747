// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"math"
	"strings"

	"homenode/internal/render"
	"homenode/internal/render/words"
	"homenode/internal/unit"
)

// Text is the whole screen: at most m.h lines of at most m.w cells.
func (m *Model) Text() string {
	return strings.Join(m.draw().lines(m.o.Colour, m.o.ASCII), "\n")
}

// draw lays the screen out, from top to bottom:
//
//	header · map of the nodes · table of workloads, or what lies over it · status · legend · keys
func (m *Model) draw() *canvas {
	c := newCanvas(max(1, m.w), max(1, m.h))
	f, ok := m.time.frame()
	if !ok {
		m.header(c, f)
		c.put(1, 2, plain, "reading…")
		m.bottom(c)
		return c
	}
	m.header(c, f)
	bottom := m.bottom(c)
	switch m.on {
	case onDetail:
		m.page(c, bottom, m.detail(f))
	case onWhy:
		m.page(c, bottom, m.whyPage())
	case onHelp:
		m.page(c, bottom, helpPage())
	case onInfo:
		m.page(c, bottom, infoPage(f))
	default:
		y := m.drawMap(c, f, 1, bottom)
		m.table(c, f, y, bottom)
	}
	if m.on == onPlan {
		m.planBox(c)
	}
	return c
}

// header says what is shown, and its time.
func (m *Model) header(c *canvas, f Frame) {
	x := c.put(0, 0, strong, " homenode top")
	if title := clean(m.o.Title); title != "" {
		x = c.put(x, 0, plain, " · "+fit(title, max(8, c.w/4), true))
	}
	right := m.state()
	if len(f.Window.Nodes) > 0 {
		right = strings.TrimPrefix(right+" · ", " · ") + fmt.Sprintf("window %d, %s s · %s ", f.Window.Seq, render.Fixed(f.Window.Length.Seconds(), 1), f.Window.At.Format("15:04:05"))
	}
	size := " · " + machineSize(f)
	if room := c.w - textWidth(right) - 1; x+textWidth(size) <= room {
		c.put(x, 0, dim, size)
	} else if x > room {
		right = fit(right, max(0, c.w-x-1), false)
	}
	c.right(c.w, 0, plain, right)
}

func machineSize(f Frame) string {
	cpus, memory, all := 0, unit.Bytes(0), true
	for _, n := range f.Window.Nodes {
		cpus += n.CPUs.Len()
		b, ok := n.Memory.Get()
		memory, all = memory+b, all && ok
	}
	text := fmt.Sprintf("%s, %s", render.Count(len(f.Window.Nodes), "node"), render.Count(cpus, "CPU"))
	if len(f.Window.Nodes) == 1 {
		text = "1 node (no NUMA), " + render.Count(cpus, "CPU")
	}
	if all {
		text += ", " + memory.String()
	}
	return text
}

// state says how time passes, if it is not simply now.
func (m *Model) state() string {
	newer := len(m.time.frames) - 1 - m.time.now
	_, tape := m.o.Source.(Tape)
	switch {
	case m.still:
		return ""
	case tape && m.playing && !m.time.atEnd() && math.IsInf(m.o.Speed, 1):
		return "▸ fastest"
	case tape && m.playing && !m.time.atEnd():
		return fmt.Sprintf("▸ ×%g", m.o.Speed)
	case tape:
		return fmt.Sprintf("held %d of %d", m.time.now+1, len(m.time.frames))
	case !m.playing && newer > 0:
		return fmt.Sprintf("FROZEN, %d newer", newer)
	case !m.playing:
		return "FROZEN"
	}
	return ""
}

const (
	legendKinds = "█ anon ▓ file ▒ other · free"
	legendHow   = "m measured  M modelled  e estimated  ? unknown  ! below target"
)

// bottom draws the last lines and returns the first of them.
func (m *Model) bottom(c *canvas) int {
	y := c.h - 1
	if m.still {
		y++
	} else {
		m.keyLine(c, y)
	}
	if c.h < 8 && m.status() == "" {
		return y
	}
	y--
	status := m.status()
	if status == "" || c.h >= 28 {
		how := "   " + legendHow
		if c.w < 2+textWidth(legendKinds+how) {
			how = "  m measured M modelled e estimated ! low"
		}
		c.put(1, y, dim, legendKinds+how)
		if c.h < 28 {
			return y
		}
		y--
	}
	if status != "" {
		c.put(1, y, warn, fit(status, c.w-2, false))
	}
	return y
}

// status is the most important message.
func (m *Model) status() string {
	f, _ := m.time.frame()
	switch {
	case m.said != "":
		return m.said
	case m.trouble != "":
		return m.trouble
	case len(f.Window.Outcomes) > 0:
		return outcomes(f)
	case len(f.Window.Nodes) > 0 && f.Window.Length == 0:
		return "reading… rates come with the second window"
	}
	return ""
}

// outcomes shows the last outcome that was not plainly done, else the last one.
func outcomes(f Frame) string {
	all := f.Window.Outcomes
	o := all[len(all)-1]
	for _, other := range all {
		if other.Status != "done" && other.Status != "in-progress" {
			o = other
		}
	}
	text := fmt.Sprintf("%v: %s", o.Step, o.Status)
	if why := words.Became(o); o.Status != "done" && why != "" {
		text += ": " + why
	}
	if len(all) > 1 {
		text += fmt.Sprintf("  (and %d more)", len(all)-1)
	}
	return clean(text)
}

type hint struct{ key, text string }

// keyLine shows the most important keys here, as many as fit.
func (m *Model) keyLine(c *canvas, y int) {
	if m.ask != noPrompt {
		label := "filter: "
		if m.ask == askNodes {
			label = "bind " + fit(clean(m.target), max(8, c.w/3), true) + " to nodes (like 0 or 0-1): "
		}
		x := c.put(1, y, strong, label)
		c.mark(c.put(x, y, plain, fit(m.input, max(1, c.w-x-2), true)), y, 1)
		return
	}
	_, tape := m.o.Source.(Tape)
	hints := []hint{{"?", "help"}, {"q", "quit"}, {"enter", "detail"}, {"w", "why"}, {"b", "bind"}, {"u", "unbind"}, {"f", "freeze"}, {"←→", "step"}, {"/", "filter"}, {"c l p m n", "sort"}, {"r", "reverse"}, {"t", "trend"}, {"i", "problems"}}
	switch {
	case m.on == onPlan:
		hints = []hint{{"y", "apply"}, {"esc", "cancel"}}
	case m.on != onTable:
		hints = []hint{{"esc", "back"}, {"↑↓", "scroll"}, {"w", "why"}, {"b", "bind"}, {"u", "unbind"}}
	case tape:
		hints = []hint{{"?", "help"}, {"q", "quit"}, {"space", "play, hold"}, {"←→", "step"}, {"home end", ""}, {"+ -", "speed"}, {"enter", "detail"}, {"/", "filter"}, {"c l p m n", "sort"}, {"r", "reverse"}, {"t", "trend"}, {"i", "problems"}}
	}
	x := 1
	for _, h := range hints {
		if x+textWidth(h.key)+1+textWidth(h.text) > c.w-1 {
			continue
		}
		x = c.put(x, y, accent, h.key)
		x = c.put(x+1, y, dim, h.text) + 2
		if h.text == "" {
			x--
		}
	}
}
