// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
)

// game is a made-up score: each workload has a worth for each set of nodes, and workloads
// that share a node cost each other.
type game struct {
	sets  []Nodes
	worth [][]float64
	way   [][]float64
}

func newGame(r *rand.Rand, workloads, nodes int) *game {
	g := &game{}
	for n := Nodes(1); n < 1<<nodes; n++ {
		g.sets = append(g.sets, n)
	}
	for range workloads {
		var worth, way []float64
		for range g.sets {
			worth = append(worth, r.Float64())
		}
		for range workloads {
			way = append(way, r.Float64())
		}
		g.worth, g.way = append(g.worth, worth), append(g.way, way)
	}
	return g
}

func (g *game) Choices() [][]Nodes {
	all := make([][]Nodes, len(g.worth))
	for i := range all {
		all[i] = g.sets
	}
	return all
}

func (g *game) Weights() []float64 { return make([]float64, len(g.worth)) }

func (g *game) Score(p Placement) float64 {
	score := 0.0
	for i, n := range p {
		score += g.worth[i][n-1]
		for j := range i {
			score -= g.way[i][j] * float64((n & p[j]).count())
		}
	}
	return score
}

// brute is the brute-force twin.
func brute(g *game, p Placement, i int) float64 {
	if i == len(p) {
		return g.Score(p)
	}
	most := math.Inf(-1)
	for _, n := range g.sets {
		p[i] = n
		most = max(most, brute(g, p, i+1))
	}
	return most
}

func TestSearchFindsTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		g := newGame(r, 1+r.IntN(3), 2+r.IntN(2))
		got, want := g.Score(Search(g)), brute(g, make(Placement, len(g.worth)), 0)
		if math.Abs(got-want) > 1e-9 {
			t.Fatalf("score %g, the best is %g", got, want)
		}
	}
}

// Nine workloads on two nodes, as in mao-feed.yaml: all placements are tried.
func TestSearchOfNine(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 10 {
		g := newGame(r, 9, 2)
		if got, want := g.Score(Search(g)), brute(g, make(Placement, 9), 0); math.Abs(got-want) > 1e-9 {
			t.Fatalf("score %g, the best is %g", got, want)
		}
	}
}

// Where there are too many placements to try all, no single move and no swap is better.
func TestSearchOfMany(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	near, all := 0, 100
	for range all {
		g := newGame(r, 4, 3) // 7^4: few enough for the twin, but searched the other way
		choices := g.Choices()
		p := greedy(g, choices)
		for improve(g, choices, p) {
		}
		most := g.Score(p)
		for i := range p {
			q := slices.Clone(p)
			if move(g, choices[i], q, i, most) > most+better {
				t.Fatalf("a single move makes it better: %v, %v", p, q)
			}
		}
		best := brute(g, make(Placement, 4), 0)
		if most > best+1e-9 {
			t.Fatalf("better than the best: %g, %g", most, best)
		}
		if most >= 0.9*best {
			near++
		}
	}
	if near < 80 {
		t.Errorf("%d of %d are within a tenth of the best", near, all)
	}
}

// With many nodes, workloads are placed one after the other. Alone on its node each is as
// well off as possible.
func TestManyNodes(t *testing.T) {
	b, _ := catalog.MachineNamed(catalog.Torus)
	_, y := b.Make()
	var here []Contender
	for i := range 6 {
		s := &sim.Spec{Name: fmt.Sprint(i), Replicas: 1, Threads: 4, Memory: sim.MemorySpec{Private: unit.GiB}}
		s.Work = sim.WorkSpec{Cycles: 100, Instructions: 100, Regions: []sim.RegionSpec{{Size: 256 * unit.MiB, Accesses: 10, Parallelism: 4, Stream: true}}}
		here = append(here, Contender{Spec: s})
	}
	asked := 0
	left := bestPlaced(&y, here, func() bool { asked++; return asked > 2 })
	if n := len(slices.DeleteFunc(left, func(n Nodes) bool { return n == 0 })); asked != 3 || n != 2 {
		t.Errorf("stopped when asked the third time: asked %d times, %d placed", asked, n)
	}
	seen := map[Nodes]bool{}
	for i, nodes := range bestPlaced(&y, here, nil) {
		if nodes.count() != 1 || seen[nodes] {
			t.Errorf("workload %d is on %b, others on %v", i, nodes, seen)
		}
		seen[nodes] = true
	}
}
