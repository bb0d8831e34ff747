// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// traffic is the DRAM reads of one node's CPUs, in bytes/s, and the share that
// its own memory served. It is always an estimate: counters know the workload,
// not the node.
type traffic struct {
	rate  unit.Opt[float64]
	local unit.Opt[float64]
}

// trafficOf spreads every workload's reads over the nodes where it runs:
//
//  1. reads by the CPUs of node n: all reads × CPU share(n),
//  2. the local ones, if all pages were read alike: that × page share(n),
//  3. scaled so that a workload's local and remote reads match the counts.
//
// Without read counters (1) is by CPU time alone: then there is a local share,
// but no rate.
func trafficOf(w window.Window) []traffic {
	sum := make([]struct{ local, remote, cpuLocal, cpu float64 }, len(w.Nodes))
	counted, guessed := false, false
	for _, wl := range w.Workloads {
		cpu, pages := shares(wl)
		if cpu == nil {
			continue
		}
		all, known := wl.Loads()
		weight, _ := wl.CPU.Get()
		near := 0.0
		for i := range cpu {
			if pages != nil {
				near += cpu[i] * pages[i]
			}
		}
		local, remote := float64(wl.LocalLoads.Or(0)), float64(wl.RemoteLoads.Or(0))
		for i := range cpu {
			s := &sum[i]
			if pages != nil {
				guessed = true
				s.cpu += weight * cpu[i]
				s.cpuLocal += weight * cpu[i] * pages[i]
			}
			if !known || all == 0 {
				continue
			}
			counted = true
			l, r := cpu[i], cpu[i]
			if pages != nil && near > 0 { // 2, 3
				l = cpu[i] * pages[i] / near
			}
			if pages != nil && near < 1 {
				r = cpu[i] * (1 - pages[i]) / (1 - near)
			}
			s.local += local * l
			s.remote += remote * r
		}
	}
	out := make([]traffic, len(w.Nodes))
	for i, s := range sum {
		switch {
		case counted && w.Length > 0:
			out[i] = traffic{unit.Some((s.local + s.remote) * window.LineBytes / w.Length.Seconds()), share(s.local, s.local+s.remote)}
		case guessed:
			out[i].local = share(s.cpuLocal, s.cpu)
		}
	}
	return out
}

// shares are a workload's CPU time and pages by node, each adding up to 1. They
// are nil if unknown or zero.
func shares(wl window.Workload) (cpu, pages []float64) {
	by := make([]float64, len(wl.CPUByNode))
	for i, v := range wl.CPUByNode {
		c, ok := v.Get()
		if !ok {
			return nil, pagesShare(wl)
		}
		by[i] = c
	}
	cpu = scaled(by)
	if pages = pagesShare(wl); len(pages) != len(cpu) {
		pages = nil
	}
	return cpu, pages
}

func pagesShare(wl window.Workload) []float64 {
	by, ok := wl.PagesByNode()
	if !ok {
		return nil
	}
	all := make([]float64, len(by))
	for i, b := range by {
		all[i] = float64(b)
	}
	return scaled(all)
}

func scaled(by []float64) []float64 {
	total := 0.0
	for _, v := range by {
		total += v
	}
	if total <= 0 {
		return nil
	}
	out := make([]float64, len(by))
	for i, v := range by {
		out[i] = v / total
	}
	return out
}

func share(part, whole float64) unit.Opt[float64] {
	r, ok := unit.RatioOf(part, whole).Get()
	return unit.OptOf(float64(r), ok)
}

// parts cuts a bar of width cells into shares, by largest remainder, so that
// they add up to the width.
func parts(by []float64, width int) []int {
	out := make([]int, len(by))
	total, used := 0.0, 0
	for _, v := range by {
		total += max(0, v)
	}
	if total <= 0 || width <= 0 {
		return out
	}
	order := make([]int, len(by))
	for i, v := range by {
		order[i] = i
		out[i] = int(max(0, v) / total * float64(width))
		used += out[i]
	}
	rest := func(i int) float64 { return max(0, by[i])/total*float64(width) - float64(out[i]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest(b), rest(a)) })
	for k := 0; used < width; k = (k + 1) % len(order) {
		if by[order[k]] > 0 {
			out[order[k]]++
			used++
		}
	}
	return out
}

// nodeGlyph is the character of a node in a stacked bar: its id in base 36.
func nodeGlyph(id int) rune {
	if id < 0 || id > 35 {
		return '*'
	}
	return rune(strconv.FormatInt(int64(id), 36)[0])
}

// howMark says in one character how a figure is known; the footer explains it.
func howMark(how unit.Source) string {
	switch how {
	case unit.HowMeasured:
		return "m"
	case unit.HowModelled:
		return "M"
	case unit.HowEstimated:
		return "e"
	}
	return ""
}

// guessMark is howMark for figures that are usually measured: only others are marked.
func guessMark(how unit.Source) string {
	if how == unit.HowMeasured {
		return ""
	}
	return howMark(how)
}

// shown is a figure, or "?".
func shown[T any](v unit.Opt[T], print func(T) string) string {
	if x, ok := v.Get(); ok {
		return print(x)
	}
	return "?"
}

// percent is "93%", or "?".
func percent(v unit.Opt[float64]) string { return shown(v, render.WholePercent) }

// cpus is "3.1", or "?".
func cpus(v unit.Opt[float64]) string {
	return shown(v, func(f float64) string {
		if f >= 99.95 {
			return render.Fixed(f, 0)
		}
		return render.Fixed(f, 1)
	})
}

// binding says in a few characters what a workload is bound to, and which
// program bound it.
func binding(wl window.Workload, w window.Window) (string, style) {
	b := wl.Binding
	var on []int
	for _, n := range w.Nodes {
		if n.CPUs.Overlaps(b.CPUs) {
			on = append(on, n.ID)
		}
	}
	nodes := set.FromNodes(on...)
	switch {
	case b.OursCPUs && (b.OursMems || !b.Mems.IsEmpty() && b.Mems.SubsetOf(nodes)): // or the memory nodes were the same before
		return "●" + nodes.String(), plain
	case b.OursCPUs:
		return "●" + nodes.String() + " cpus", plain
	case b.OursMems:
		return "●" + b.Mems.String() + " mems", plain
	case b.PinnedCPUs || b.PinnedMems:
		return "◆pinned", dim
	}
	return "-", dim
}

// spark draws values from 0 to top; an unknown value is a blank.
func spark(values []unit.Opt[float64], top float64) string {
	const levels = "▁▂▃▄▅▆▇█"
	glyphs := []rune(levels)
	out := make([]rune, len(values))
	for i, v := range values {
		f, ok := v.Get()
		switch {
		case !ok:
			out[i] = ' '
		case top <= 0 || f <= 0:
			out[i] = glyphs[0]
		default:
			out[i] = glyphs[min(len(glyphs)-1, int(f/top*float64(len(glyphs))))]
		}
	}
	return string(out)
}

func largest(values []unit.Opt[float64]) float64 {
	top := 0.0
	for _, v := range values {
		top = max(top, v.Or(0))
	}
	return top
}
