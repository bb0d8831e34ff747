// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"homenode/internal/render"
	"homenode/internal/sim/arena"
)

// arena.tmpl is also well-formed XML: the test reads it as such.
//
//go:embed arena.tmpl
var arenaPage string

var arenaDocument = render.NewPage(arenaPage, render.PictureStyle+arenaStyle, template.FuncMap{
	"verdict": verdictClass,
})

// ArenaHTML writes one self-contained page: no scripts, nothing fetched.
func ArenaHTML(w io.Writer, r arena.Result) error {
	v, err := newArenaView(r)
	if err != nil {
		return err
	}
	machines, mixes, policies := v.facts()
	data := struct {
		Name, About, Lead         string
		Answer, Badges, Notes     []string
		Matrix                    render.Grid
		Ranked                    bool
		Dots                      []render.Panel
		Costs                     []render.Grid
		Lines                     render.Grid
		Papers                    []paper
		Machines, Mixes, Policies []render.Fact
	}{
		Name: render.Or(v.Name, unknown), About: v.About, Lead: v.answer[0], Answer: v.answer[1:], Badges: v.badges(), Notes: v.notes,
		Ranked: len(v.sum.Rankings) > 0, Papers: v.papers, Machines: machines, Mixes: mixes, Policies: policies,
	}
	if data.Ranked {
		data.Matrix, data.Costs, data.Lines = v.matrix(), v.costs(), v.lines()
		for i, k := range v.sum.Rankings {
			if d, ok := v.dotsOf(i, k); ok {
				data.Dots = append(data.Dots, d.panel())
			}
		}
	}
	if err := arenaDocument().Execute(w, data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func (v arenaView) badges() (out []string) {
	for _, b := range []struct {
		n    int
		what string
	}{{len(v.Machines), "machine"}, {len(v.Mixes), "mix"}, {len(v.Policies), "policy"}, {len(v.Seeds), "seed"}, {len(v.Rows), "statement"}} {
		if b.n > 0 {
			out = append(out, render.Count(b.n, b.what))
		}
	}
	return out
}

// columns are the rankings of the page's tables: all machines together first, if there are
// several.
func (v arenaView) columns() (all []arena.Ranking, heads []string) {
	if len(v.sum.Rankings) > 1 {
		all, heads = append(all, v.sum.Overall), append(heads, "all together")
	}
	for _, k := range v.sum.Rankings {
		all, heads = append(all, k), append(heads, k.Machine)
	}
	return all, heads
}

// each makes a grid with a row for each policy, the fastest first, and a column for each
// machine.
func (v arenaView) each(caption string, of func(p arena.Place) render.Cell) render.Grid {
	columns, heads := v.columns()
	g := render.Grid{Caption: caption, Heads: append([]string{"policy"}, heads...), Keys: 1}
	for _, p := range v.sum.Overall.Places {
		row := render.Cells(p.Policy)
		if p.Policy == v.Against {
			row[0].Class = "against"
		}
		for _, k := range columns {
			c := render.Cell{Text: "–"}
			if place, ok := k.Place(p.Policy); ok {
				c = of(place)
			}
			row = append(row, c)
		}
		g.Add(row...)
	}
	return g
}

// matrix is speed by policy and machine, with rank and interval.
func (v arenaView) matrix() render.Grid {
	return v.each("Speed, × that of "+v.Against+": rank, median of the seeds, interval", func(p arena.Place) render.Cell {
		if p.Speed.N == 0 {
			return render.Cell{Text: "none"}
		}
		c := render.Cell{Text: render.Times(p.Speed.Median), Small: interval(p.Speed), Class: heat(p.Speed.Median)}
		if p.Rank > 0 {
			c.Small = "#" + strconv.Itoa(p.Rank) + " · " + c.Small
		} else {
			c.Small = "interval " + c.Small
		}
		return c
	})
}

// heat is the colour of a speed, in five steps to either side.
func heat(v float64) string {
	side := "up"
	if v < 1 {
		side = "down"
	}
	size := math.Inf(1)
	if v > 0 {
		size = math.Abs(math.Log(v))
	}
	for i, limit := range []float64{arena.Noticeable, 0.02, 0.07, 0.2, 0.7} {
		if size <= limit {
			if i == 0 {
				return "even"
			}
			return side + strconv.Itoa(i)
		}
	}
	return side + "5"
}

// costs are the figures besides speed.
func (v arenaView) costs() []render.Grid {
	return []render.Grid{
		v.each("Variation over seeds: sigma / mean", func(p arena.Place) render.Cell { return render.Cell{Text: render.Show(p.Variation, render.Percent)} }),
		v.each("99th percentile of the time of an operation, × that of "+v.Against, func(p arena.Place) render.Cell {
			return render.Cell{Text: shown(p.P99, render.Times), Small: intervalOf(p.P99)}
		}),
		v.each("Moves of threads and bindings of a run, and bytes moved", func(p arena.Place) render.Cell {
			c := render.Cell{Text: shown(p.Moves, render.Whole)}
			if p.MovedB.N > 0 && p.MovedB.Median > 0 {
				c.Small = render.Bytes(p.MovedB.Median)
			}
			return c
		}),
		v.each("Local share of DRAM reads", func(p arena.Place) render.Cell { return render.Cell{Text: shown(p.Local, render.Percent)} }),
		v.each("At its worst: speed against "+v.Against+", and under which mix", func(p arena.Place) render.Cell {
			if p.Worst.Speed.N == 0 {
				return render.Cell{Text: "none"}
			}
			return render.Cell{Text: render.Change(p.Worst.Speed.Median - 1), Small: p.Worst.Mix, Class: heat(p.Worst.Speed.Median)}
		}),
	}
}

func intervalOf(e arena.Estimate) string {
	if !e.CI.Known() {
		return ""
	}
	return interval(e)
}

// lines is a table of all lines.
func (v arenaView) lines() render.Grid {
	g := render.Grid{Caption: "Every policy on every machine under every mix", Keys: 1, Heads: []string{"policy, machine, mix", "speed", "p99", "CPU/op", "local", "variation", "fairness", "moves", "moved", "slowest application"}}
	for _, l := range v.sum.Lines {
		slowest := render.Cell{Text: "–"}
		if l.Slowest != "" {
			slowest = render.Cell{Text: render.Change(l.SlowestSpeed - 1), Small: l.Slowest}
		}
		row := []render.Cell{
			{Text: l.Policy + ", " + l.Machine + ", " + l.Mix},
			{Text: shown(l.Speed, render.Times), Small: intervalOf(l.Speed), Class: heat(l.Speed.Median)}, {Text: shown(l.P99, render.Times), Small: intervalOf(l.P99)}, {Text: shown(l.CPUPerOp, render.Times)},
			{Text: shown(l.Local, render.Percent)}, {Text: render.Show(l.Variation, render.Percent)}, {Text: shown(l.Fairness, render.Number)}, {Text: shown(l.Moves, render.Whole)}, {Text: shown(l.MovedB, render.Bytes)}, slowest,
		}
		if l.Speed.N == 0 {
			row[1].Class = ""
		}
		g.Add(row...)
	}
	return g
}

// verdictClass is the colour of a verdict; its words say the same.
func verdictClass(v arena.Verdict) string {
	switch v {
	case arena.Confirmed:
		return "good"
	case arena.NotConfirmed:
		return "bad"
	}
	return "na"
}
