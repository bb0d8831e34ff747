// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"strings"

	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/render/words"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// text is one line of a page.
type text struct {
	s    style
	line string
}

// page shows lines over map and table; they scroll.
func (m *Model) page(c *canvas, bottom int, all []text) {
	var lines []text
	for _, t := range all {
		if textWidth(t.line) <= c.w-2 {
			lines = append(lines, t)
			continue
		}
		indent := len(t.line) - len(strings.TrimLeft(t.line, " "))
		for _, part := range wrap(t.line, c.w-2-indent) {
			lines = append(lines, text{t.s, strings.Repeat(" ", indent) + part})
		}
	}
	room := max(1, bottom-2)
	m.scroll = max(0, min(m.scroll, len(lines)-room))
	for i, t := range lines[m.scroll:min(len(lines), m.scroll+room)] {
		c.put(1, 2+i, t.s, t.line)
	}
	if rest := len(lines) - m.scroll - room; rest > 0 {
		c.right(c.w-1, bottom-1, dim, fmt.Sprintf(" %d more below ", rest))
	}
}

// detail is everything a window says about one workload, with its sources.
func (m *Model) detail(f Frame) []text {
	wl, ok := find(f.Window, m.selected)
	if !ok {
		return []text{{warn, clean(m.selected) + " is not in this window"}}
	}
	ft := window.FeaturesOf(wl, f.Window.Length)
	all := []text{{strong, clean(wl.ID)}, {plain, ""}}
	say := func(name, format string, args ...any) {
		all = append(all, text{plain, fmt.Sprintf("%-22s ", name) + clean(fmt.Sprintf(format, args...))})
	}
	say("service", "%s", render.Name(wl.Service))
	say("owner", "%s", render.Name(wl.Owner))
	for _, l := range wl.Labels.All() {
		say(l.Name, "%s", render.Name(l.Value))
	}
	say("approved", "%s", yesNo(wl.Approved, "yes: binding it pays, says the configuration", "no"))
	say("target", "%s", targetText(wl.Target))
	for _, b := range bindingLines(wl.Binding) {
		say(b[0], "%s", b[1])
	}
	all = append(all, text{plain, ""})
	x := field.Workload{Workload: &wl, Features: &ft}
	for _, figure := range field.Workloads {
		if figure.Of == nil { // figures by node are in the table below
			continue
		}
		line := figure.Explained(x)
		if figure.ID == field.LocalAccess.ID {
			line += ft.Within(" ± ")
		}
		say(figure.Name, "%s", line)
	}
	all = append(all, text{plain, ""})
	all = append(all, byNode(wl, f.Window)...)
	width := max(10, m.w-26)
	cpu := m.time.history(wl.ID, width, cpuUse)
	return append(all, text{plain, ""},
		text{plain, fmt.Sprintf("%-22s ", "local, 0 to 100%") + spark(m.time.history(wl.ID, width, localRatio), 1)},
		text{plain, fmt.Sprintf("%-22s ", "CPU, 0 to "+cpus(unit.Some(largest(cpu)))) + spark(cpu, largest(cpu))})
}

func bindingLines(b window.Binding) [][2]string {
	who := func(ours, pinned bool) string {
		switch {
		case ours:
			return ", set by homenode"
		case pinned:
			return ", set by another process"
		}
		return ""
	}
	all := [][2]string{{"may use CPUs", render.Or(b.CPUs.String(), "?") + who(b.OursCPUs, b.PinnedCPUs)}, {"may use memory of", render.Or(b.Mems.String(), "?") + who(b.OursMems, b.PinnedMems)}}
	if b.PinnedWhy != "" {
		all = append(all, [2]string{"because", b.PinnedWhy})
	}
	return all
}

// byNode is a small table. A source that all figures share is printed once.
func byNode(wl window.Workload, w window.Window) []text {
	all := []text{{dim, fmt.Sprintf("%-6s %10s %12s %12s", "NODE", field.CPU.Head, field.Anon.Head, "FILE")}}
	for i, n := range w.Nodes {
		all = append(all, text{plain, fmt.Sprintf("%-6d %10s %12s %12s", n.ID, cell2(wl.CPUByNode, i, render.CPUs),
			cell2(wl.AnonByNode, i, unit.Bytes.String), cell2(wl.FileByNode, i, unit.Bytes.String))})
	}
	for _, from := range []struct{ name, how string }{{"CPU", sourceOf(wl.CPUByNode)}, {"memory", sourceOf(wl.AnonByNode)}} {
		if from.how != "" {
			all = append(all, text{dim, "       " + from.name + " by node: " + clean(from.how)})
		}
	}
	return all
}

func cell2[T any](by []unit.Value[T], i int, print func(T) string) string {
	if i >= len(by) {
		return "?"
	}
	return shown(by[i].V, print)
}

func sourceOf[T any](by []unit.Value[T]) string {
	if len(by) == 0 {
		return "unknown"
	}
	if !by[0].Known() {
		return "unknown: " + by[0].From
	}
	return render.Source(by[0].How, by[0].From)
}

func targetText(t unit.Opt[unit.Ratio]) string {
	if r, ok := t.Get(); ok {
		return r.String() + " of its reads should be local"
	}
	return "none"
}

func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func (m *Model) whyPage() []text {
	all := []text{{strong, "why " + clean(m.selected) + " is where it is"}, {plain, ""}}
	for _, line := range strings.Split(strings.TrimRight(m.why, "\n"), "\n") {
		indent := strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " ")))
		all = append(all, text{plain, indent + clean(line)})
	}
	return all
}

// infoPage lists what could not be read, and the contradictions in the machine's
// description.
func infoPage(f Frame) []text {
	all := []text{{strong, "what could not be read in this window"}}
	for _, p := range f.Window.Problems {
		all = append(all, text{plain, "  " + clean(p)})
	}
	if len(f.Window.Problems) == 0 {
		all = append(all, text{dim, "  nothing: every figure that is ? says why in its workload's detail (enter)"})
	}
	doubts := f.Machine.AllDoubts()
	if len(doubts) > 0 {
		all = append(all, text{plain, ""}, text{strong, "contradictions of the firmware"})
	}
	for _, d := range doubts {
		all = append(all, text{plain, "  " + clean(d)})
	}
	if len(f.Window.Outcomes) > 0 {
		all = append(all, text{plain, ""}, text{strong, "what became of the last steps"})
	}
	for _, o := range f.Window.Outcomes {
		all = append(all, text{plain, "  " + clean(words.Outcome(o))})
	}
	return all
}

// Lines of at most 78 cells: they fit the smallest usual terminal.
const help = `Keys
  ↑ ↓ k j        choose a workload; enter: all its figures with their sources
  c l p m n      sort by CPU, local ratio, pages, MSR, name; r: reverse
  /              filter by a part of path or service; esc ends it
  t              trend of the local ratio, or of CPU
  w              why it is where it is, as the agent decided
  b  u           bind it to nodes, unbind it: first a dry run, y applies it
  f  space       freeze, continue; in a recording: hold, play
  ← → home end   step through what was seen; the oldest, the newest
  + -            speed of a recording
  i              what could not be read; what became of the last steps
  q              back, quit

Figures
  LOCAL is the share of DRAM reads served by the reader's own node. How it is
  known: m measured, M modelled (the lab), e estimated from where its CPU time
  and its pages are. ? is unknown, never zero. ! is below its target.
  ± is what nine of ten of the lab's scenarios were within, each by its mean,
  on the worse of two machines.
  MSR is memory stall cycles / cycles. BY NODE: a cell's digit is the node.
  A node's local share and reads are estimates: counters know the workload only.
  BOUND: ● by homenode (cpus: only its CPUs so far), ◆ by another process.

Binding
  A bind sets the CPUs, moves the pages that are elsewhere in the background,
  then sets the memory nodes. The previous settings are on disk first.
  What is bound here stays so when top ends, its pages as far as they came.
  u puts it back; so do 'homenode restore' and the next 'homenode agent'.
  While an agent runs, it decides: nothing can be bound here.`

func helpPage() []text {
	var all []text
	for _, line := range strings.Split(help, "\n") {
		s := plain
		if line != "" && line[0] != ' ' {
			s = strong
		}
		all = append(all, text{s, line})
	}
	return all
}

// planBox shows a dry run in the middle of the screen.
func (m *Model) planBox(c *canvas) {
	var lines []text
	say := func(s style, indent, t string) {
		for _, part := range wrap(t, min(c.w, 100)-6-len(indent)) {
			lines = append(lines, text{s, indent + part})
		}
	}
	say(strong, "", "dry run: "+clean(m.plan.action.String()))
	lines = append(lines, text{})
	switch {
	case !m.plan.known:
		say(dim, "", "asking for a dry run…")
	case m.plan.refused != "":
		say(warn, "", m.plan.refused)
	default:
		for _, l := range m.plan.lines {
			say(plain, "  ", l)
		}
	}
	lines = append(lines, text{})
	if m.plan.known && m.plan.refused == "" {
		say(dim, "", "Nothing has been changed. y does it; esc leaves everything as it is.")
	} else {
		say(dim, "", "Nothing has been changed. esc goes back.")
	}
	drawBox(c, lines)
}

// drawBox draws lines in a frame in the middle. If there are too many, the first are
// left out.
func drawBox(c *canvas, lines []text) {
	lines = lines[max(0, len(lines)-max(1, c.h-2)):]
	width := 0
	for _, l := range lines {
		width = max(width, textWidth(l.line))
	}
	w, h := min(c.w, width+4), len(lines)+2
	x, y := (c.w-w)/2, max(0, (c.h-h)/2)
	c.clear(x-1, y, w+2, h)
	edge := strings.Repeat("─", max(0, w-2))
	c.put(x, y, accent, "╭"+edge+"╮")
	c.put(x, y+h-1, accent, "╰"+edge+"╯")
	for i, l := range lines {
		c.put(x, y+1+i, accent, "│")
		c.put(x+2, y+1+i, l.s, fit(l.line, max(1, w-4), false))
		c.put(x+w-1, y+1+i, accent, "│")
	}
}
