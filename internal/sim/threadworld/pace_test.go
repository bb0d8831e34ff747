// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Threads that meet at barriers are as fast after they were brought together as threads
// that were together from the start. The pace was once that of the last arrival, as slow as
// at its old place.
func TestPaceAfterAMove(t *testing.T) {
	spec := chasing("a", 2)
	spec.Work.Cycles, spec.Work.Regions[0].Accesses = 100_000, 10 // so few that none queues for memory
	spec.Work.Barrier, spec.Work.Spin = 10, true
	spec.Start.Touch = set.FromNodes(0)
	spec.Memory.Private = 256 * unit.MiB
	for i := range spec.Work.Regions {
		spec.Work.Regions[i].Size = 64 * unit.MiB
	}
	c := configOf(shapetest.Shape(t, "two"), spec)
	c.Linux.LoadBalance = false
	w := world(t, c)
	home := c.Machine.Nodes[0].CPUs.IDs()
	rate := func(first, second int) float64 {
		w.Apply([]action.Step{
			{Kind: action.PinThread, Workload: "/a", Thread: 1, CPUs: set.FromCPUs(first)},
			{Kind: action.PinThread, Workload: "/a", Thread: 2, CPUs: set.FromCPUs(second)},
		})
		w.Run(5 * time.Second)
		w.Truth()
		w.Run(time.Second)
		return w.Truth()[0].Ops
	}
	away := c.Machine.Nodes[1].CPUs.IDs()
	together := rate(home[0], home[1])
	apart := rate(home[0], away[0])
	again := rate(home[0], home[1])
	if apart > 0.99*together || again < 0.995*together || again > 1.005*together {
		t.Errorf("%.0f operations together, %.0f apart, %.0f together again", together, apart, again)
	}
}
