// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"

	"homenode/internal/set"
)

// rowing is two threads that wait for each other: one on each node of shape two, with all
// memory on node 0.
func rowing(barrier int, spin bool) Spec {
	s := chasing("a", 2)
	s.Start = StartSpec{CPUs: set.FromCPUs(0, 2), Pinned: true, Touch: set.FromNodes(0)}
	s.Work.Barrier, s.Work.Spin = barrier, spin
	return s
}

// minute is the second minute of the first workload.
func minute(t *testing.T, specs ...Spec) (Truth, float64) {
	t.Helper()
	w := world(t, testConfig(t, specs...))
	w.Run(time.Minute)
	w.Truth()
	w.Run(time.Minute)
	return w.Truth()[0], w.Config.System.Hz
}

// A thread of 220 cycles per operation waits for one of 377: both do as many as the slower
// one. With spinning, both are always busy; else the first sleeps for 157 of 377 cycles.
func TestBarrierByHand(t *testing.T) {
	const never = 1 << 30 // operations between barriers: chance does not matter
	free, hz := minute(t, rowing(0, false))
	near(t, "without barriers", free.Ops, 60*(hz/220+hz/377), 0.03)
	blocked, _ := minute(t, rowing(never, false))
	near(t, "with barriers: the remote pace", blocked.Ops, 60*2*hz/377, 0.03)
	near(t, "local and remote reads are as many", blocked.Local, blocked.Remote, 1e-6)
	near(t, "CPU time, sleeping", blocked.CPUSeconds, 60*(1+220.0/377), 0.03)
	spun, _ := minute(t, rowing(never, true))
	near(t, "spinning: the same pace", spun.Ops, blocked.Ops, 1e-6)
	near(t, "CPU time, spinning", spun.CPUSeconds, 120, 1e-6)
	near(t, "cycles are CPU time", spun.Cycles, spun.CPUSeconds*hz, 1e-9)
	// This is why instructions per cycle are no index (Rao): waiting raises them.
	ipc := func(x Truth) float64 { return x.Instructions / x.Cycles }
	near(t, "IPC, working", ipc(blocked), 4*2/(220.0+377), 0.03)
	near(t, "IPC, spinning", ipc(spun), (4*2+157)/(2*377.0), 0.03)
}

// If four threads with exponential work meet after each operation, the slowest takes √(2 ln
// 4) deviations longer than the mean. If they meet after N operations, it takes 1/√N of
// that.
func TestStragglersByHand(t *testing.T) {
	ops := func(barrier int, spread float64) float64 {
		s := Spec{Name: "a", Threads: 4, Work: WorkSpec{Cycles: 1e6, Instructions: 1e6, Barrier: barrier}}
		s.Demand.Spread = spread
		got, _ := minute(t, s)
		return got.Ops
	}
	all := ops(0, 0)
	near(t, "after each", ops(1, 0), all/(1+math.Sqrt(2*math.Log(4))), 1e-6)
	near(t, "after a hundred", ops(100, 0), all/(1+math.Sqrt(2*math.Log(4)/100)), 1e-6)
	near(t, "of work that varies less", ops(100, 0.25), all/(1+math.Sqrt(2*math.Log(4)/400)), 1e-6)
	one := Spec{Name: "a", Threads: 1, Work: WorkSpec{Cycles: 1e6, Barrier: 1}}
	got, _ := minute(t, one)
	near(t, "one thread waits for no other", got.Ops, all/4, 1e-6)
}

// A neighbour on one of the nodes slows threads on both.
func TestBarrierWithNeighbour(t *testing.T) {
	s := Spec{Name: "a", Threads: 2, Work: WorkSpec{Cycles: 1e6, Barrier: 1 << 30}}
	s.Start = StartSpec{CPUs: set.FromCPUs(0, 2), Pinned: true}
	n := Spec{Name: "b", Threads: 3, Work: WorkSpec{Cycles: 1e6}}
	n.Start = StartSpec{CPUs: set.FromCPUs(0, 1), Pinned: true}
	alone, _ := minute(t, s)
	both, _ := minute(t, s, n)
	// Half of its weight is there, beside all of b's: it gets a third of two CPUs.
	near(t, "operations beside three threads on two CPUs", both.Ops, alone.Ops*2/3, 0.01)
	near(t, "CPU time", both.CPUSeconds, 80, 0.01)
}
