// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"

	"homenode/internal/render"
	"homenode/internal/store"
)

// mostSquares is how many hosts are drawn one by one. More are a map of bins alone.
const mostSquares = 400

func hosts(s *site, r *request) (content, error) {
	c := content{Title: "Hosts", Lead: "How far a host's nodes are apart: the busiest node's use less the idlest's, of their CPUs. The farthest first.",
		Filter: "Hosts with this in their name", Fields: r.kept("sort")}
	var sorted string
	a, err := s.ask(r, store.Hosts, func(q *store.Question) {
		sorted = r.order(q, "-apart_ratio")
		q.Host = pattern(r.filter)
	})
	if err != nil {
		return c, err
	}
	bins, err := s.ask(r, store.HostBins, nil)
	if err != nil {
		return c, err
	}
	m := newHostMap(bins, r)
	if len(m.cells) > 0 {
		c.Pictures = append(c.Pictures, m.panel())
	}
	if m.hosts > 0 && m.hosts <= mostSquares {
		all, err := s.ask(r, store.Hosts, func(q *store.Question) { q.Most = mostSquares })
		if err != nil {
			return c, err
		}
		c.Pictures = append(c.Pictures, squares(all, r))
	}
	t := r.paged(r.tabled(a, []spec{
		{name: "host", head: "host", left: true, link: r.toHost(a)},
		{name: "apart_ratio", head: "nodes apart", how: "apart_how", bar: true},
		{name: "remote_ratio", head: "remote access ratio", how: "remote_how", bar: true},
		{name: "nodes", head: "nodes"},
		{name: "workloads", head: "workloads"},
		{name: "bound_workloads", head: "bound workloads"},
		{name: "last", head: "last heard of"},
	}, sorted), a.More)
	if r.filter != "" {
		t.Empty = "No host has this in its name."
	}
	c.Tables = []table{t}
	return c, nil
}

// hostMap is how many hosts have their nodes so far apart, and so many remote reads.
type hostMap struct {
	*request
	cells       map[[2]int]bin // by remote access ratio, distance
	hosts, most float64
	unknown     float64
}

type bin struct {
	hosts   float64
	example string
}

const (
	binCount = 10
	binWide  = 44.0
	binHigh  = 24.0
	mapLeft  = 52.0
	mapTop   = 18.0
)

func newHostMap(a store.Table, r *request) hostMap {
	m := hostMap{request: r, cells: map[[2]int]bin{}}
	for _, row := range a.Rows {
		n, _ := a.Number(row, "hosts")
		apart, known := a.Number(row, "apart_ratio")
		remote, alsoKnown := a.Number(row, "remote_ratio")
		if m.hosts += n; !known || !alsoKnown {
			m.unknown += n
			continue
		}
		at := [2]int{binOf(remote), binOf(apart)}
		b := m.cells[at]
		b.hosts, b.example = b.hosts+n, a.Text(row, "example")
		m.cells[at] = b
		m.most = max(m.most, b.hosts)
	}
	return m
}

// binOf is the bin that begins at a figure, which the store has rounded down.
func binOf(v float64) int { return min(max(int(v/store.BinStep+0.5), 0), binCount-1) }

func (m hostMap) panel() render.Panel {
	sub := fmt.Sprintf("%s by distance of their nodes (upwards) and remote access ratio (to the right); darker is more", render.Count(int(m.hosts), "host"))
	if m.unknown > 0 {
		sub += fmt.Sprintf("; of %s one of them is unknown", render.Integer(int(m.unknown)))
	}
	return render.Panel{ID: "map", Title: "All hosts", Sub: sub, Wide: mapLeft + binCount*binWide + 20, High: mapTop + binCount*binHigh + 36, Draw: m.draw}
}

// draw has the calm corner at the lower left.
func (m hostMap) draw(c *render.Canvas) {
	bottom := mapTop + binCount*binHigh
	c.Text(0, 11, "axis", "start", "nodes apart")
	for i := 0; i <= binCount; i += 2 {
		text := render.WholePercent(float64(i) / binCount)
		c.Text(mapLeft-6, bottom-float64(i)*binHigh+4, "axis", "end", text)
		c.Text(mapLeft+float64(i)*binWide, bottom+15, "axis", "middle", text)
	}
	c.Text(mapLeft+binCount*binWide, bottom+31, "axis", "end", "remote access ratio")
	c.Rect(mapLeft, mapTop, binCount*binWide, binCount*binHigh, "host", 0)
	for x := range binCount {
		for y := binCount - 1; y >= 0; y-- {
			if b, ok := m.cells[[2]int{x, y}]; ok {
				m.cell(c, x, y, b)
			}
		}
	}
}

// cell is a bin: its shade follows the logarithm, for most hosts are in few bins.
func (m hostMap) cell(c *render.Canvas, x, y int, b bin) {
	share := 1.0
	if m.most > 1 {
		share = 0.15 + 0.85*math.Log(b.hosts)/math.Log(m.most)
	}
	about := fmt.Sprintf("%s: nodes %s apart, %s remote; one of them is %s", render.Count(int(b.hosts), "host"), binRange(y), binRange(x), render.Printable(b.example))
	c.Link(m.link("/host", "host", b.example), about, func() {
		c.Cell(mapLeft+float64(x)*binWide, mapTop+float64(binCount-1-y)*binHigh, binWide, binHigh, share, render.Short(b.hosts), false)
	})
}

func binRange(i int) string {
	return render.Range(render.WholePercent(float64(i)*store.BinStep), render.WholePercent(float64(i+1)*store.BinStep))
}

// squares are hosts one by one, the farthest apart first.
func squares(a store.Table, r *request) render.Panel {
	const size, columns = 21.0, 20
	lines := (len(a.Rows) + columns - 1) / columns
	draw := func(c *render.Canvas) {
		for i, row := range a.Rows {
			x, y := float64(i%columns)*size, float64(i/columns)*size
			name := a.Text(row, "host")
			apart, known := a.Number(row, "apart_ratio")
			about := fmt.Sprintf("%s: nodes %s apart, remote access ratio %s", render.Printable(name), figure(a, row, "apart_ratio"), figure(a, row, "remote_ratio"))
			c.Link(r.link("/host", "host", name), about, func() {
				if !known {
					c.Hatched(x, y, size, size, "cell")
					return
				}
				c.Fill(x, y, size, size, "cell", render.Shade(apart))
			})
		}
	}
	return render.Panel{ID: "squares", Title: "Each host", Sub: "a square each, the farthest apart first; darker is farther, hatched is unknown", Wide: columns * size, High: float64(lines) * size, Draw: draw}
}
