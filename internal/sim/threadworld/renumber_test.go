// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"
	"math"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
)

// renumbered is a shape whose node i is at to[i]; CPUs keep their numbers.
func renumbered(s machine.Shape, to []int) machine.Shape {
	out := s
	out.Nodes = make([]machine.ShapeNode, len(s.Nodes))
	out.Distances = make([][]int, len(s.Nodes))
	for i := range s.Nodes {
		out.Nodes[to[i]] = s.Nodes[i]
		row := make([]int, len(s.Nodes))
		for k, d := range s.Distances[i] {
			row[to[k]] = d
		}
		out.Distances[to[i]] = row
	}
	out.Links = nil
	for _, l := range s.LinkPairs() {
		a, b := to[l[0]], to[l[1]]
		out.Links = append(out.Links, [2]int{min(a, b), max(a, b)})
	}
	return out
}

// TestRenumbering: where threads and pages are given, the nodes' numbers are only names.
func TestRenumbering(t *testing.T) {
	for seed := range uint64(200) {
		r := detmath.NewRandom(seed, "renumber")
		s := shapetest.Shape(t, []string{"two", "smt", "far"}[r.Below(3)])
		to := make([]int, len(s.Nodes))
		for i := range to {
			to[i] = (i + 1) % len(to)
		}
		var specs, others []sim.Spec
		left := s.Machine().CPUsOf(s.Machine().NodesWithCPUs())
		for i := range 3 {
			x := drawSpec(&r, s.Machine(), fmt.Sprint("w", i))
			if !x.Start.CPUs.SubsetOf(left) {
				continue
			}
			left = left.Minus(x.Start.CPUs)
			if r.Below(4) == 0 {
				x.Work.Barrier = 1000
			}
			y := x
			y.Start.Touch = set.NodeSet{}
			for id := range x.Start.Touch.All() {
				y.Start.Touch = y.Start.Touch.With(to[id])
			}
			specs, others = append(specs, x), append(others, y)
		}
		if len(specs) == 0 {
			continue
		}
		a := world(t, configOf(s, specs...))
		b := world(t, configOf(renumbered(s, to), others...))
		a.Run(time.Second)
		b.Run(time.Second)
		x, y := a.Truth(), b.Truth()
		for i := range x {
			for _, f := range [][2]float64{{x[i].Ops, y[i].Ops}, {x[i].CPUSeconds, y[i].CPUSeconds}, {x[i].Local, y[i].Local}, {x[i].Remote, y[i].Remote}} {
				if math.Abs(f[0]-f[1]) > 1e-6*max(f[0], f[1], 1) {
					t.Errorf("seed %d: %s: %+v, renumbered %+v", seed, x[i].Workload, x[i], y[i])
					break
				}
			}
		}
	}
}
