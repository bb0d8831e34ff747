// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// graph is who is near to whom: all pairs of nodes, by distance.
type graph struct {
	order  []int // node ids around the circle
	levels []graphLevel
}

// graphLevel is the pairs at one distance.
type graphLevel struct {
	distance int
	pairs    [][2]int
}

// Nodes in a graph: of fewer there is nothing to see, of more nothing is seen.
const minGraph, maxGraph = 4, 24

// newGraph is false where a picture would say nothing: all pairs are equal, or too many
// lines cross. A pair without a known way has no line.
func (f facts) newGraph() (graph, bool) {
	n := len(f.Nodes)
	if n < minGraph || n > maxGraph {
		return graph{}, false
	}
	g := graph{order: f.around()}
	pairs := map[int][][2]int{}
	for i, a := range g.order {
		for _, b := range g.order[i+1:] {
			if d, ok := f.between(a, b); ok && d != noWay {
				pairs[d] = append(pairs[d], [2]int{a, b})
			}
		}
	}
	for d, p := range pairs {
		g.levels = append(g.levels, graphLevel{d, p})
	}
	slices.SortFunc(g.levels, func(a, b graphLevel) int { return a.distance - b.distance })
	return g, len(g.levels) > 1
}

// between is the shorter of both ways.
func (f facts) between(a, b int) (int, bool) {
	there, ok1 := f.Distance(a, b).Get()
	back, ok2 := f.Distance(b, a).Get()
	return min(there, back), ok1 && ok2
}

// around is the order on the circle: packages stay together, and memory with its CPUs.
func (f facts) around() []int {
	var ids []int
	for _, fr := range f.frames() {
		for _, top := range fr.nodes {
			for _, n := range top.all() {
				ids = append(ids, n.node.ID)
			}
		}
	}
	return ids
}

// class is how the lines of a level look: the nearest are thick, the next thin. A level of
// so many lines that they would hide the others is pale, and so is all that is farther.
func (g graph) class(level int) string {
	switch {
	case level == 0:
		return "near"
	case level == 1 && len(g.levels[1].pairs) <= 2*len(g.order):
		return "next"
	}
	return "far"
}

// says names the lines' distances: "thick: distance 16; thin: 22; pale: 28, 33".
func (g graph) says() string {
	by := map[string][]string{}
	for i, l := range g.levels {
		by[g.class(i)] = append(by[g.class(i)], strconv.Itoa(l.distance))
	}
	parts := []string{"thick: distance " + by["near"][0]}
	for _, c := range [][2]string{{"next", "thin"}, {"far", "pale"}} {
		list := by[c[0]]
		if len(list) > 4 {
			list = []string{list[0], list[1], "…", list[len(list)-1]}
		}
		if len(list) > 0 {
			parts = append(parts, c[1]+": "+strings.Join(list, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func (f facts) graphPanel() (panel, bool) {
	g, ok := f.newGraph()
	if !ok {
		return panel{}, false
	}
	side := min(420, 200+float64(len(g.order))*7)
	p := panel{title: "Links between nodes", sub: g.says(), w: side, h: side}
	p.draw = func(c *canvas, x, y float64) { f.drawGraph(c, g, x+side/2, y+side/2, side/2-16) }
	return p, true
}

func (f facts) drawGraph(c *canvas, g graph, x, y, r float64) {
	at := map[int][2]float64{}
	for i, id := range g.order {
		angle := 2*math.Pi*(float64(i)+0.5)/float64(len(g.order)) - math.Pi/2
		at[id] = [2]float64{x + r*math.Cos(angle), y + r*math.Sin(angle)}
	}
	for i, l := range slices.Backward(g.levels) { // the nearest on top
		for _, p := range l.pairs {
			c.Line(at[p[0]][0], at[p[0]][1], at[p[1]][0], at[p[1]][1], g.class(i))
		}
	}
	for _, id := range g.order {
		class := "dot"
		if f.noCPUs.Has(id) {
			class = "dot bare"
		}
		c.Circle(at[id][0], at[id][1], 14, class)
		c.middle(at[id][0], at[id][1]+4.5, "num local", strconv.Itoa(id))
	}
}
