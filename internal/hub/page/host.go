// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/store"
)

func host(s *site, r *request) (content, error) {
	name := r.question.Host
	c := content{Title: render.Printable(name), Lead: "One host: its NUMA nodes, and its workloads on them.", Fields: r.kept("host", "sort")}
	if name == "" {
		return c, fmt.Errorf("the address names no host: %w", store.ErrQuestion)
	}
	of := func(q *store.Question) { q.Host = name }
	nodes, err := s.ask(r, store.Nodes, of)
	if err != nil {
		return c, err
	}
	var sorted string
	a, err := s.ask(r, store.Workloads, func(q *store.Question) { sorted = r.order(q, "-cpus"); of(q) })
	if err != nil {
		return c, err
	}
	if len(nodes.Rows) > 0 {
		c.Pictures = []render.Panel{newMachine(nodes, a).panel(name, howOf(nodes, "busy_how"), howOf(nodes, "memory_how"))}
	}
	t := r.paged(r.tabled(a, r.workloadSpecs(a, name), sorted), a.More)
	t.Caption, t.Empty = "Workloads", "This host has no window in this time."
	recent, err := s.recent(r, of)
	c.Tables = []table{t, recent}
	return c, err
}

func (r *request) workloadSpecs(a store.Table, host string) []spec {
	return []spec{
		{name: "workload", head: "workload", left: true, link: r.toWorkload(a, host), small: func(row []any) string { return render.Printable(a.Text(row, "name")) }},
		{name: "service", head: "service", left: true, link: r.toService(a)},
		{name: "cpus", head: "CPUs", how: "cpu_how"},
		{name: "bound", head: "bound to nodes", fixed: true, show: func(row []any) string { return render.Or(render.Printable(a.Text(row, "bound")), "not bound") }},
		{name: "local_ratio", head: "local access ratio", how: "local_how", bar: true},
		{name: "cpu_by_node", head: "CPUs by node", fixed: true},
		{name: "anon_by_node", head: "memory by node", fixed: true},
		{name: "traffic_bytes_per_s", head: "traffic", how: "traffic_how"},
		{name: "last", head: "last window", fixed: true},
	}
}

// figuresOf reads figures with blanks between them.
func figuresOf(text string) (all []float64) {
	for _, part := range strings.Fields(text) {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return nil
		}
		all = append(all, v)
	}
	return all
}

// machine is what is drawn of a host:
//
//	┌ node 0 ───────────┐ ┌ node 1 …
//	│ CPUs   ▇▇▇▇▁▁▁▁   │ │
//	│ memory ▇▇▁▁▁▁▁▁   │ │
//	│ /web/1   ▇▇▇ 3.10 │ │
//	└───────────────────┘ └──
type machine struct {
	nodes []nodeBox
	rows  int // of workloads, at most
}

type nodeBox struct {
	name         string
	busy, memory gauge
	loads        []load
	more         int
}

type gauge struct {
	text  string
	share float64
	known bool
}

type load struct {
	name  string
	cpus  float64
	bound bool
}

const (
	boxWide   = 250.0
	boxGap    = 14.0
	boxTop    = 84.0
	loadHigh  = 19.0
	mostLoads = 8
	mostBoxes = 64
	boxesLine = 4
)

func newMachine(nodes, loads store.Table) machine {
	var m machine
	for i, row := range nodes.Rows[:min(len(nodes.Rows), mostBoxes)] {
		id, _ := nodes.Number(row, "node")
		b := nodeBox{name: "node " + render.Integer(int(id)), busy: gaugeOf(nodes, row, "busy_cpus", "cpus"), memory: gaugeOf(nodes, row, "used_bytes", "memory_bytes")}
		for _, l := range loads.Rows {
			if all := figuresOf(loads.Text(l, "cpu_by_node")); i < len(all) && all[i] >= 0.005 {
				b.loads = append(b.loads, load{render.Printable(loads.Text(l, "workload")), all[i], loads.Text(l, "bound") != ""})
			}
		}
		slices.SortStableFunc(b.loads, func(x, y load) int { return int(1e6*y.cpus) - int(1e6*x.cpus) })
		if b.more = len(b.loads) - mostLoads; b.more > 0 {
			b.loads = b.loads[:mostLoads]
		}
		m.rows = max(m.rows, len(b.loads)+1)
		m.nodes = append(m.nodes, b)
	}
	return m
}

func gaugeOf(a store.Table, row []any, part, whole string) gauge {
	v, ok := a.Number(row, part)
	all, okAll := a.Number(row, whole)
	g := gauge{text: figure(a, row, part) + " of " + figure(a, row, whole), known: ok && okAll && all > 0}
	if g.known {
		g.share = v / all
	}
	return g
}

func (m machine) high() float64 { return boxTop + float64(m.rows)*loadHigh + 10 }

func (m machine) panel(name, busyHow, memoryHow string) render.Panel {
	across := min(len(m.nodes), boxesLine)
	down := (len(m.nodes) + boxesLine - 1) / boxesLine
	return render.Panel{ID: "machine", Title: "Nodes", Sub: fmt.Sprintf("use of CPUs (%s) and memory (%s) of each node, and the CPU time of workloads on it; green is bound, orange is not", busyHow, memoryHow),
		Wide: float64(across)*(boxWide+boxGap) - boxGap + 2, High: float64(down)*(m.high()+boxGap) - boxGap + 2,
		Draw: func(c *render.Canvas) {
			for i, b := range m.nodes {
				b.draw(c, 1+float64(i%boxesLine)*(boxWide+boxGap), 1+float64(i/boxesLine)*(m.high()+boxGap), m.high())
			}
		}}
}

func (b nodeBox) draw(c *render.Canvas, x, y, high float64) {
	c.Rect(x, y, boxWide, high, "host", 6)
	c.Text(x+12, y+20, "group", "start", b.name)
	for i, g := range []struct {
		name string
		gauge
	}{{"CPUs", b.busy}, {"memory", b.memory}} {
		at := y + 30 + float64(i)*24
		c.Text(x+12, at+9, "axis", "start", g.name)
		c.Text(x+boxWide-12, at+9, "figure", "end", g.text)
		if !g.known {
			c.Hatched(x+12, at+13, boxWide-24, 5, "cell")
			continue
		}
		c.Rect(x+12, at+13, boxWide-24, 5, "track", 2)
		c.Rect(x+12, at+13, (boxWide-24)*min(max(g.share, 0), 1), 5, "fill", 2)
	}
	most := 0.0
	for _, l := range b.loads {
		most = max(most, l.cpus)
	}
	for i, l := range b.loads {
		at := y + boxTop + float64(i)*loadHigh
		class := "s1"
		if l.bound {
			class = "s3"
		}
		c.Text(x+12, at+11, "name", "start", clipPath(l.name, boxWide-120))
		c.Rect(x+boxWide-100, at+3, 52*l.cpus/most, 9, "part "+class, 1)
		c.Text(x+boxWide-12, at+11, "figure", "end", render.CPUs(l.cpus))
	}
	at := y + boxTop + float64(len(b.loads))*loadHigh + 11
	switch {
	case b.more > 0:
		c.Text(x+12, at, "axis", "start", render.Integer(b.more)+" more")
	case len(b.loads) == 0:
		c.Text(x+12, at, "axis", "start", "no workload known here")
	}
}

// clipPath keeps the end of a path, which says most.
func clipPath(text string, wide float64) string {
	return render.ClipLeft(text, int(wide/(11*render.LetterWidth)))
}

func workload(s *site, r *request) (content, error) {
	q := r.question
	c := content{Title: render.Printable(q.Workload), Lead: "One workload of host " + render.Printable(q.Host) + " by time.", Fields: r.kept("host", "workload")}
	if q.Host == "" || q.Workload == "" {
		return c, fmt.Errorf("the address names no host, or no workload: %w", store.ErrQuestion)
	}
	of := func(to *store.Question) { to.Host, to.Workload = q.Host, q.Workload }
	past, err := s.ask(r, store.History, func(to *store.Question) { of(to); to.Most = mostPoints })
	if err != nil {
		return c, err
	}
	c.Pictures = r.past(past, false)
	recent, err := s.recent(r, of)
	c.Tables = []table{recent}
	if len(c.Pictures) == 0 {
		c.Notes = []string{"This workload has no window in this time."}
	}
	return c, err
}
