// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// graph is who is near to whom: the pairs at the smallest distance between two
// nodes, and those at the next.
type graph struct {
	order      []int // node ids around the circle
	near, next [][2]int
	at         [2]int // the distances
}

// Nodes in a graph: of fewer there is nothing to see, of more nothing is seen.
const minGraph, maxGraph = 4, 24

// newGraph is false where a picture would say nothing: all pairs are equal, or
// too many lines cross.
func (f facts) newGraph() (graph, bool) {
	n := len(f.Nodes)
	if n < minGraph || n > maxGraph {
		return graph{}, false
	}
	g := graph{order: f.around()}
	pairs := map[int][][2]int{}
	var levels []int
	for i, a := range g.order {
		for _, b := range g.order[i+1:] {
			d, ok := f.between(a, b)
			if !ok {
				return graph{}, false
			}
			if pairs[d] == nil {
				levels = append(levels, d)
			}
			pairs[d] = append(pairs[d], [2]int{a, b})
		}
	}
	slices.Sort(levels)
	if len(levels) < 2 || 4*len(pairs[levels[0]]) < n { // of so few lines the table says enough
		return graph{}, false
	}
	g.at = [2]int{levels[0], levels[1]}
	g.near, g.next = pairs[levels[0]], pairs[levels[1]]
	if len(g.next) > 2*n { // a web that hides the rest
		g.next = nil
	}
	return g, true
}

// between is the shorter of both ways.
func (f facts) between(a, b int) (int, bool) {
	there, ok1 := f.Distance(a, b).Get()
	back, ok2 := f.Distance(b, a).Get()
	return min(there, back), ok1 && ok2
}

// around is the order on the circle: packages stay together.
func (f facts) around() []int {
	var ids []int
	for _, fr := range f.frames() {
		for _, n := range fr.nodes {
			ids = append(ids, n.node.ID)
		}
	}
	return ids
}

func (f facts) graphPanel() (panel, bool) {
	g, ok := f.newGraph()
	if !ok {
		return panel{}, false
	}
	side := min(420, 200+float64(len(g.order))*7)
	p := panel{title: "Nearest nodes", w: side, h: side,
		sub: fmt.Sprintf("thick: distance %d; thin: %d", g.at[0], g.at[1])}
	if g.next == nil {
		p.sub = fmt.Sprintf("lines: distance %d", g.at[0])
	}
	p.draw = func(c *canvas, x, y float64) { f.drawGraph(c, g, x+side/2, y+side/2, side/2-16) }
	return p, true
}

func (f facts) drawGraph(c *canvas, g graph, x, y, r float64) {
	at := map[int][2]float64{}
	for i, id := range g.order {
		angle := 2*math.Pi*(float64(i)+0.5)/float64(len(g.order)) - math.Pi/2
		at[id] = [2]float64{x + r*math.Cos(angle), y + r*math.Sin(angle)}
	}
	for _, lines := range []struct {
		class string
		pairs [][2]int
	}{{"next", g.next}, {"near", g.near}} {
		for _, p := range lines.pairs {
			c.Line(at[p[0]][0], at[p[0]][1], at[p[1]][0], at[p[1]][1], lines.class)
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
