// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/threadworld"
)

// Point is the speed of an application in a VM whose memory is at a distance, with nothing
// else running. Modelled.
type Point struct {
	App      string
	Distance int     // SLIT
	Ops      float64 // per second
	// Lost is the lost share of its speed with memory on its own node: 0.1 is a tenth
	// slower.
	Lost float64
}

const (
	// A point is measured for curveLasts after curveWarmup, in steps of curveStep. A lone
	// VM is in a steady state, so that is ample.
	curveWarmup = 2 * time.Second
	curveLasts  = 4 * time.Second
	curveStep   = 100 * time.Millisecond
	// curveCores is the size of the VM that is moved away from its memory: a small VM.
	curveCores = 4
)

// Curve measures what distance costs each application: one small VM, pinned to cores of one
// node, with all its memory bound to one node at each distance from there.
func Curve(m arena.Machine, names ...string) ([]Point, error) {
	from, to, err := places(m.Host)
	if err != nil {
		return nil, err
	}
	var all []Point
	for _, name := range names {
		near := 0.0
		for _, at := range to {
			ops, err := alone(m, name, from, at)
			if err != nil {
				return nil, err
			}
			if near == 0 {
				near = ops
			}
			all = append(all, Point{name, m.Host.Distance(from.ID, at).Or(0), ops, 1 - ops/near})
		}
	}
	return all, nil
}

// places returns the first node with room for the VM and, for each distance from it, the
// first node with memory, itself first.
func places(h machine.Machine) (machine.Node, []int, error) {
	k := slices.IndexFunc(h.Nodes, func(n machine.Node) bool { return n.CPUs.Len() >= curveCores && n.Memory.Or(0) > 0 })
	if k < 0 {
		return machine.Node{}, nil, fmt.Errorf("measure what distance costs on %s: no node has %d CPUs and memory", h.Origin, curveCores)
	}
	from := h.Nodes[k]
	var to []int
	seen := map[int]bool{}
	for id := range h.NodesWithMemory().All() {
		d, ok := h.Distance(from.ID, id).Get()
		if ok && !seen[d] {
			seen[d] = true
			to = append(to, id)
		}
	}
	slices.SortStableFunc(to, func(a, b int) int {
		return cmp.Compare(h.Distance(from.ID, a).Or(0), h.Distance(from.ID, b).Or(0))
	})
	return from, to, nil
}

// alone returns the application's operations per second, pinned to the node's first cores.
func alone(m arena.Machine, name string, from machine.Node, to int) (float64, error) {
	spec := vm{Size{Name: "small", Cores: curveCores, Memory: Sizes[0].Memory}, name, 1}.spec()
	spec.Start.Pinned = true
	spec.Start.Bind = set.FromNodes(to)
	for cpu := range from.CPUs.All() {
		if spec.Start.CPUs.Len() < curveCores {
			spec.Start.CPUs = spec.Start.CPUs.With(cpu)
		}
	}
	w, err := threadworld.NewWorld(sim.Config{
		Machine: m.Host, System: m.System, Linux: linux.DefaultSettings(), Specs: []sim.Spec{spec}, Seed: 1,
		Start: time.Date(2026, 1, 5, 20, 0, 0, 0, time.UTC), Step: curveStep,
	})
	if err != nil {
		return 0, fmt.Errorf("measure what distance costs %s: %w", name, err)
	}
	w.Run(curveWarmup)
	w.Truth()
	w.Run(curveLasts)
	t := w.Truth()
	if len(t) != 1 || t[0].Ops <= 0 {
		return 0, fmt.Errorf("measure what distance costs %s: with its memory on node %d it did nothing", name, to)
	}
	return t[0].Ops / t[0].Seconds, nil
}
