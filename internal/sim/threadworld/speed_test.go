// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/unit"
)

// grid is a machine of identical nodes, in a ring with long links.
func grid(nodes, cpus int) machine.Shape {
	s := machine.Shape{Name: "grid", Model: machine.DefaultModel()}
	for n := range nodes {
		var ids []int
		for k := range cpus {
			ids = append(ids, n*cpus+k)
		}
		s.Nodes = append(s.Nodes, machine.ShapeNode{CPUs: set.FromCPUs(ids...), Memory: 4 * unit.GiB})
		row := make([]int, nodes)
		for m := range row {
			if row[m] = 21; m == n {
				row[m] = 10
			}
		}
		s.Distances = append(s.Distances, row)
		s.Links = append(s.Links, [2]int{n, (n + 1) % nodes})
		if nodes > 12 {
			s.Links = append(s.Links, [2]int{n, (n + 6) % nodes})
		}
	}
	return s
}

// mixed is four workloads of this many threads each.
func mixed(threads int) (all []sim.Spec) {
	for i, w := range []sim.WorkSpec{
		{Cycles: 100, Instructions: 100, Regions: []sim.RegionSpec{{Size: 8 * unit.MiB, Accesses: 1, Parallelism: 1}}},
		{Cycles: 1000, Instructions: 900, Regions: []sim.RegionSpec{{Size: 16 * unit.MiB, Shared: true, Accesses: 4, Parallelism: 2}}},
		{Cycles: 400, Instructions: 600, Regions: []sim.RegionSpec{{Size: 4 * unit.MiB, Accesses: 2, Parallelism: 4, Stream: true}}, Barrier: 10000, Spin: true},
		{Cycles: 20000, Instructions: 20000, Regions: []sim.RegionSpec{{Size: unit.MiB, Accesses: 10, Parallelism: 2}}, Barrier: 1000},
	} {
		s := sim.Spec{Name: fmt.Sprint("w", i), Threads: threads, Work: w}
		for _, r := range w.Regions {
			if r.Shared {
				s.Memory.Shared += r.Size
			} else {
				s.Memory.Private += r.Size * unit.Bytes(threads)
			}
		}
		all = append(all, s)
	}
	return all
}

func BenchmarkSteps(b *testing.B) {
	for _, x := range []struct {
		name                 string
		nodes, cpus, threads int
		pinned, moves        bool
	}{
		{"16on8", 2, 4, 4, false, false},
		{"8on8", 2, 4, 2, false, false},
		{"8on8pinned", 2, 4, 2, true, false},
		{"8on8moving", 2, 4, 2, false, true},
		{"256on288", 36, 8, 64, false, false},
		{"256on288pinned", 36, 8, 64, true, false},
		{"256on288moving", 36, 8, 64, false, true},
	} {
		b.Run(x.name, func(b *testing.B) {
			c := configOf(grid(x.nodes, x.cpus), mixed(x.threads)...)
			ids := c.Machine.CPUsOf(c.Machine.NodesWithCPUs()).IDs()
			for i := range c.Specs {
				if x.pinned {
					c.Specs[i].Start.CPUs = set.FromCPUs(ids[i*len(ids)/4 : i*len(ids)/4+x.threads]...)
					c.Specs[i].Start.Pinned = true
				}
			}
			w := world(b, c)
			w.Run(2 * time.Second)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				w.Run(10 * time.Millisecond)
				if x.moves {
					t := w.ids[i%len(w.ids)]
					w.Apply([]action.Step{{Kind: action.PinThread, Workload: t.wl.ID, Thread: t.id, CPUs: w.nodes[(i+i/len(w.ids))%len(w.nodes)].set, Release: true}})
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
