// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"io"
	"strconv"

	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Rao draws Rao's grid as an SVG file.
func Rao(w io.Writer, p profile.Profile) error {
	p = render.Cleaned(p)
	panels := raoPanels(p)
	if len(panels) == 0 {
		return nothing(p, profile.Rao)
	}
	return writeSVG(w, p, "Rao's grid", panels)
}

// raoPanels are the cost by working set, one panel for each number of threads and
// sharing size, then the predictors of the cost.
func raoPanels(p profile.Profile) []render.Panel {
	g, llc := newRaoGrid(p.Rao), llcOf(p)
	var out []render.Panel
	for _, n := range g.threads {
		for _, sharing := range g.sharings {
			if pl := g.plot(n, sharing, llc); !pl.Empty() {
				title := render.Count(n, "thread") + ", " + sharedText(sharing)
				out = append(out, pl.Panel("rao-"+strconv.Itoa(len(out)), title, g.unit()+" per operation"))
			}
		}
	}
	return append(out, g.scatters(p.Rao)...)
}

// sharedText is the size of what the threads add to; 0 is no adds at all.
func sharedText(b unit.Bytes) string {
	if b == 0 {
		return "nothing shared"
	}
	return b.String() + " shared"
}

// raoWide is as wide as a phone.
const raoWide = 380

func (g raoGrid) plot(threads int, sharing, llc unit.Bytes) *render.Plot {
	pl := &render.Plot{X: sizes("working set of a thread"), Y: render.Axis{Label: g.unit()}, Wide: raoWide}
	for _, a := range arrangements {
		l := a.line()
		l.Joined = true
		for _, ws := range g.sizes {
			f := g.cost(raoKey{threads, a, ws, sharing})
			if y, ok := extent(f, 1); ok && ws > 0 {
				l.Points = append(l.Points, render.Point{X: render.Exactly(float64(ws)), Y: y})
			}
		}
		if len(l.Points) > 0 {
			pl.Lines = append(pl.Lines, l)
		}
	}
	if llc > 0 && !pl.Empty() {
		pl.Limits = g.limits(threads, llc)
	}
	return pl
}

// line is dashed and has open marks where memory is remote.
func (a arrangement) line() render.Line {
	l := render.Line{Name: a.String(), Class: hue(0), Marked: true}
	if a.spread == profile.Inter {
		l.Class, l.Shape = hue(1), 1
	}
	if a.memory == profile.Remote {
		l.Class += " dashed open"
	}
	return l
}

// limits are where the LLC is full, if they are on the axis.
func (g raoGrid) limits(threads int, llc unit.Bytes) []render.Limit {
	var out []render.Limit
	low, high := g.sizes[0], g.sizes[len(g.sizes)-1]
	if all := llc / unit.Bytes(max(threads, 1)); threads > 1 && all >= low && all <= high {
		out = append(out, render.Limit{X: float64(all), Text: "LLC / " + strconv.Itoa(threads)})
	}
	if llc >= low && llc <= high {
		out = append(out, render.Limit{X: float64(llc), Text: "LLC"})
	}
	return out
}

// scatters are the two candidates that may predict the cost of an operation.
func (g raoGrid) scatters(cells []profile.RaoCell) []render.Panel {
	r := profile.CorrelationsOf(cells)
	if r.N == 0 {
		return nil
	}
	penalty := &render.Plot{X: render.Axis{Label: "uncore penalty, cycles a request"}, Y: render.Axis{Label: g.unit()}, Wide: raoWide}
	miss := &render.Plot{X: render.Axis{Label: "LLC miss rate: misses / requests"}, Y: render.Axis{Label: g.unit()}, Wide: raoWide}
	for _, a := range arrangements {
		pen, mis := a.cloud(), a.cloud()
		g.each(func(k raoKey, c profile.RaoCell) {
			y, ok := g.cost(k).Median.Get()
			x, ok1 := c.Penalty.Median.Get()
			m, ok2 := c.MissRate.Median.Get()
			if k.arrangement == a && ok && ok1 && ok2 {
				each := render.Exactly(y / c.Accesses())
				pen.Points, mis.Points = append(pen.Points, render.Point{X: render.Exactly(x), Y: each}), append(mis.Points, render.Point{X: render.Exactly(m), Y: each})
			}
		})
		if len(pen.Points) > 0 {
			penalty.Lines, miss.Lines = append(penalty.Lines, pen), append(miss.Lines, mis)
		}
	}
	over := fmt.Sprintf("; %s; %s per load or add", render.Count(r.N, "cell"), g.unit())
	return []render.Panel{
		penalty.Panel("rao-penalty", "Uncore penalty: "+coefficient(r.Penalty), "W/A"+over),
		miss.Panel("rao-misses", "LLC miss rate: "+coefficient(r.MissRate), "of the same cells"+over),
	}
}

// cloud is a line's points alone; those of local memory overlap.
func (a arrangement) cloud() render.Line {
	l := a.line()
	if a.memory == profile.Local {
		l.Class += " faint"
	}
	return l
}

func coefficient(r unit.Opt[float64]) string {
	v, ok := r.Get()
	if !ok {
		return "r unknown"
	}
	return "r = " + render.Ratio(v)
}
