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
func raoPanels(p profile.Profile) []panel {
	g, llc := newRaoGrid(p.Rao), llcOf(p)
	var out []panel
	for _, n := range g.threads {
		for _, sharing := range g.sharings {
			if pl := g.plot(n, sharing, llc); !pl.empty() {
				title := render.Count(n, "thread") + ", " + sharedText(sharing)
				out = append(out, pl.panel("rao-"+strconv.Itoa(len(out)), title, g.unit()+" per operation"))
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

func (g raoGrid) plot(threads int, sharing, llc unit.Bytes) *plot {
	pl := &plot{xLabel: "working set of a thread", yLabel: g.unit(), xLog: true}
	for _, a := range arrangements {
		l := line{name: a.String(), joined: true, dashed: a.memory == profile.Remote, open: a.memory == profile.Remote}
		if a.spread == profile.Inter {
			l.style = 1
		}
		for _, ws := range g.sizes {
			f := g.cost(raoKey{threads, a, ws, sharing})
			if y, ok := f.Median.Get(); ok && ws > 0 {
				l.points = append(l.points, point{float64(ws), y, nil, extremes(f, 1)})
			}
		}
		if len(l.points) > 0 {
			pl.lines = append(pl.lines, l)
		}
	}
	if llc > 0 && !pl.empty() {
		pl.limits = g.limits(threads, llc)
	}
	return pl
}

// limits are where the LLC is full, if they are on the axis.
func (g raoGrid) limits(threads int, llc unit.Bytes) []limit {
	var out []limit
	low, high := g.sizes[0], g.sizes[len(g.sizes)-1]
	if all := llc / unit.Bytes(max(threads, 1)); threads > 1 && all >= low && all <= high {
		out = append(out, limit{float64(all), "LLC / " + strconv.Itoa(threads)})
	}
	if llc >= low && llc <= high {
		out = append(out, limit{float64(llc), "LLC"})
	}
	return out
}

// scatters are the two candidates that may predict the cost of an operation.
func (g raoGrid) scatters(cells []profile.RaoCell) []panel {
	r := profile.CorrelationsOf(cells)
	if r.N == 0 {
		return nil
	}
	penalty := &plot{xLabel: "uncore penalty, cycles a request", yLabel: g.unit()}
	miss := &plot{xLabel: "LLC miss rate: misses / requests", yLabel: g.unit()}
	for _, a := range arrangements {
		pen, mis := cloud(a), cloud(a)
		g.each(func(k raoKey, c profile.RaoCell) {
			y, ok := g.cost(k).Median.Get()
			x, ok1 := c.Penalty.Median.Get()
			m, ok2 := c.MissRate.Median.Get()
			if k.arrangement == a && ok && ok1 && ok2 {
				pen.points, mis.points = append(pen.points, point{x: x, y: y / c.Accesses()}), append(mis.points, point{x: m, y: y / c.Accesses()})
			}
		})
		if len(pen.points) > 0 {
			penalty.lines, miss.lines = append(penalty.lines, pen), append(miss.lines, mis)
		}
	}
	over := fmt.Sprintf("; %s; %s per load or add", render.Count(r.N, "cell"), g.unit())
	return []panel{
		penalty.panel("rao-penalty", "Uncore penalty: "+coefficient(r.Penalty), "W/A"+over),
		miss.panel("rao-misses", "LLC miss rate: "+coefficient(r.MissRate), "of the same cells"+over),
	}
}

func cloud(a arrangement) line {
	l := line{name: a.String(), faint: a.memory == profile.Local, open: a.memory == profile.Remote}
	if a.spread == profile.Inter {
		l.style = 1
	}
	return l
}

func coefficient(r unit.Opt[float64]) string {
	v, ok := r.Get()
	if !ok {
		return "r unknown"
	}
	return "r = " + strconv.FormatFloat(v, 'f', 3, 64)
}
