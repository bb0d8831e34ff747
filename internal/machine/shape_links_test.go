// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// randomGraph joins n nodes by a random tree and a few more links.
func randomGraph(r *rand.Rand) Shape {
	n := 1 + r.IntN(9)
	s := Shape{Nodes: make([]ShapeNode, n), Links: [][2]int{}}
	seen := map[[2]int]bool{}
	join := func(a, b int) {
		if a != b && !seen[[2]int{a, b}] {
			seen[[2]int{a, b}], seen[[2]int{b, a}] = true, true
			s.Links = append(s.Links, [2]int{a, b})
		}
	}
	order := r.Perm(n)
	for i := 1; i < n; i++ {
		join(order[i], order[r.IntN(i)])
	}
	for range r.IntN(2 * n) {
		join(r.IntN(n), r.IntN(n))
	}
	return s
}

// floydWarshall is the brute-force twin: hop counts between all pairs.
func floydWarshall(s Shape) [][]int {
	n := len(s.Nodes)
	hops := make([][]int, n)
	for a := range hops {
		hops[a] = slices.Repeat([]int{1000}, n)
		hops[a][a] = 0
	}
	for _, l := range s.Links {
		hops[l[0]][l[1]], hops[l[1]][l[0]] = 1, 1
	}
	for k := range n {
		for a := range n {
			for b := range n {
				hops[a][b] = min(hops[a][b], hops[a][k]+hops[k][b])
			}
		}
	}
	return hops
}

// walk follows directed links from a node, and returns the nodes it passes.
func walk(t *testing.T, s Shape, at int, links []int) []int {
	t.Helper()
	nodes := []int{at}
	for _, l := range links {
		from, to := s.Links[l/2][l%2], s.Links[l/2][1-l%2]
		if from != at {
			t.Fatalf("link %d starts at node %d, not %d", l, from, at)
		}
		at = to
		nodes = append(nodes, at)
	}
	return nodes
}

// firstPath is the brute-force twin of the tie-break: of all paths with that many hops,
// the first by node ids.
func firstPath(s Shape, at, to, hops int, hop [][]int) []int {
	if hops == 0 {
		if at == to {
			return []int{at}
		}
		return nil
	}
	for next := range s.Nodes {
		if hop[at][next] != 1 {
			continue
		}
		if rest := firstPath(s, next, to, hops-1, hop); rest != nil {
			return append([]int{at}, rest...)
		}
	}
	return nil
}

func TestRoutesAgainstFloydWarshall(t *testing.T) {
	compared := 0
	for seed := range uint64(2000) {
		s := randomGraph(rand.New(rand.NewPCG(seed, 2)))
		hop, routes := floydWarshall(s), s.Routes()
		for src := range s.Nodes {
			for dst := range s.Nodes {
				route := routes[src][dst]
				nodes := walk(t, s, dst, route)
				if len(route) != hop[dst][src] || nodes[len(nodes)-1] != src {
					t.Fatalf("seed %d: from %d to %d by %v, want %d hops", seed, dst, src, nodes, hop[dst][src])
				}
				if want := firstPath(s, dst, src, len(route), hop); !slices.Equal(nodes, want) {
					t.Fatalf("seed %d: from %d to %d by %v, want %v", seed, dst, src, nodes, want)
				}
				compared++
			}
		}
	}
	if compared < 10000 {
		t.Errorf("only %d routes compared", compared)
	}
}

func TestDefaultLinks(t *testing.T) {
	s := Shape{Nodes: make([]ShapeNode, 3), Distances: [][]int{{10, 21, 17}, {21, 10, 28}, {17, 28, 10}}}
	if got := s.LinkPairs(); len(got) != 3 { // 0-2 alone would leave node 1 out
		t.Errorf("got %v, want all pairs", got)
	}
	s.Distances = [][]int{{10, 16, 40}, {22, 10, 22}, {40, 16, 10}} // one direction is enough
	if got := s.LinkPairs(); !slices.Equal(got, [][2]int{{0, 1}, {1, 2}}) {
		t.Errorf("got %v", got)
	}
	if got := (Shape{Nodes: make([]ShapeNode, 1), Distances: [][]int{{10}}}).LinkPairs(); len(got) != 0 {
		t.Errorf("one node has links %v", got)
	}
}
