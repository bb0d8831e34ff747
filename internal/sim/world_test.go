// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// cyclesPerOp of the first workload, over a minute after a minute.
func cyclesPerOp(w *World) float64 {
	w.Run(time.Minute)
	w.Truth()
	w.Run(time.Minute)
	t := w.Truth()[0]
	return t.Cycles / t.Ops
}

// One chase on shape two: 4 cycles of its own, then a read that no cache has (its 32 MiB
// are 512 L2s and 64 LLCs): 216 cycles to its own node's memory, 373 to the other's, for
// the fraction that misses, and a little waiting at the controller.
func TestChaseByHand(t *testing.T) {
	for _, c := range []struct {
		touch int
		want  float64
	}{{0, 4 + 216}, {1, 4 + 373}} {
		s := chasing("chase", 1)
		s.Start = StartSpec{CPUs: set.FromCPUs(0), Pinned: true, Touch: set.FromNodes(c.touch)}
		got := cyclesPerOp(world(t, testConfig(t, s)))
		t.Logf("memory on node %d: %.1f cycles", c.touch, got)
		near(t, "cycles of a chase", got, c.want, 0.03)
	}
}

// Half a CPU's worth of requests, one thread: as many done as requested, CPU time by the
// cycles, latency as in M/M/1.
func TestServiceByHand(t *testing.T) {
	s := serving("feed", 1, 1000)
	s.Start = StartSpec{CPUs: set.FromCPUs(0), Pinned: true}
	c := testConfig(t, s)
	w := world(t, c)
	w.Run(time.Second)
	cycles := w.Truth()[0]
	s.Demand.Rate = 0.5 * c.System.Hz / (cycles.Cycles / cycles.Ops)
	w = world(t, testConfig(t, s))
	w.Run(10 * time.Minute)
	got := w.Truth()[0]
	near(t, "operations", got.Ops, 600*s.Demand.Rate, 1e-9)
	near(t, "asked", got.Asked, 600*s.Demand.Rate, 1e-9)
	near(t, "CPU", got.CPUSeconds, 300, 0.02)
	service := got.CPUSeconds / got.Ops
	near(t, "latency", got.Latency, 2*service, 0.02)
	near(t, "P99", got.P99, 2*service*math.Log(100), 0.05)
}

// A load beyond its capacity: it is always busy, the queue is full, the rest is dropped,
// and the latency is that of the full queue.
func TestOverload(t *testing.T) {
	s := serving("feed", 2, 1e6)
	s.Demand.Queue = 1000
	w := world(t, testConfig(t, s))
	w.Run(time.Minute)
	w.Truth()
	w.Run(time.Minute)
	got := w.Truth()[0]
	near(t, "CPU", got.CPUSeconds, 120, 0.01)
	near(t, "dropped, but for what the queue holds", got.Dropped, got.Asked-got.Ops, 1000/got.Asked)
	near(t, "latency", got.Latency, 1000/(got.Ops/60), 0.05)
}

// A closed loop with thinking: threads / (service + think).
func TestThinking(t *testing.T) {
	s := chasing("chase", 2)
	s.Demand.Think = 10 * time.Microsecond
	c := testConfig(t, s)
	w := world(t, c)
	w.Run(time.Minute)
	got := w.Truth()[0]
	service := got.CPUSeconds / got.Ops
	near(t, "operations", got.Ops, 60*2/(service+10e-6), 0.01)
}

// Regions say where accesses go: private regions to private memory, shared regions to
// shared memory. Memory that is never read does not count, and memory that caches hold
// counts little. An explicit share in the spec overrides this.
func TestRegionsReadTheirMemory(t *testing.T) {
	own, both := RegionSpec{Size: 32 * unit.MiB, Accesses: 1}, RegionSpec{Size: 192 * unit.MiB, Shared: true, Accesses: 1}
	hot, half := RegionSpec{Size: 16 * unit.KiB, Accesses: 9}, 0.5
	for _, c := range []struct {
		name    string
		regions []RegionSpec
		share   *float64
		remote  float64
	}{
		{"private only", []RegionSpec{own}, nil, 0},
		{"shared only", []RegionSpec{both}, nil, 1},
		{"alike", []RegionSpec{own, both}, nil, 0.5},
		{"hot", []RegionSpec{hot, both}, nil, 1},
		{"said", []RegionSpec{own}, &half, 0.5},
	} {
		s := chasing("a", 1)
		s.Memory.Shared, s.Memory.PrivateAccesses, s.Work.Regions = 192*unit.MiB, c.share, c.regions
		s.Start.CPUs = set.FromCPUs(0, 1)
		w := world(t, testConfig(t, s))
		shared := w.all[0].Group.Memory.Shared
		shared[0], shared[1] = 0, shared[0]+shared[1]
		w.Run(10 * time.Second)
		got := w.Truth()[0]
		if share := got.Remote / (got.Local + got.Remote); math.Abs(share-c.remote) > 0.03 {
			t.Errorf("%s: %v of its reads are remote, want %v", c.name, share, c.remote)
		}
	}
}

// A window reports what the kernel would, and is valid for policies.
func TestWindow(t *testing.T) {
	s := serving("feed", 2, 100)
	s.Replicas, s.Approved, s.Target, s.CPULimit = 2, true, 0.8, 1.5
	c := chasing("chase", 1)
	c.Start.CPUs = set.FromCPUs(0, 1)
	c.Start.Bind = set.FromNodes(0)
	w := world(t, testConfig(t, s, c))
	w.Window()
	w.Run(time.Minute)
	got := w.Window()
	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
	if got.Seq != 2 || got.Length != time.Minute || !got.At.Equal(start.Add(time.Minute)) || len(got.Nodes) != 2 || len(got.Workloads) != 3 {
		t.Fatalf("window: %+v", got)
	}
	feed, _ := got.Workload("/feed-2")
	if feed.Service != "feed" || feed.Owner != "none" || !feed.Approved || feed.Target != unit.Some[unit.Ratio](0.8) || feed.Quota.Or(0) != 1.5 || feed.Tasks.Or(0) != 2 {
		t.Errorf("feed: %+v", feed)
	}
	anon, _ := window.SumBytes(feed.AnonByNode)
	file, _ := window.SumBytes(feed.FileByNode)
	if d := anon - 128*unit.MiB; d < -8192 || d > 8192 {
		t.Errorf("anonymous memory: %v", anon)
	}
	if d := file - 16*unit.MiB; d < -8192 || d > 8192 {
		t.Errorf("files: %v", file)
	}
	chase, _ := got.Workload("/chase")
	b := chase.Binding
	if !b.PinnedCPUs || !b.PinnedMems || b.CPUs != set.FromCPUs(0, 1) || b.Mems != set.FromNodes(0, 1) {
		t.Errorf("binding: %+v", b)
	}
	if want := "its own cpuset.cpus is 0-1, its parent has 0-3; 100.0% of its sampled pages have a policy of their own (bind:0)"; b.PinnedWhy != want {
		t.Errorf("pinned: %q, want %q", b.PinnedWhy, want)
	}
	if f := window.FeaturesOf(chase, got.Length); f.LocalAccessRatio.Or(0) != 1 || f.LocalAccessRatio.How != unit.HowModelled {
		t.Errorf("local access ratio: %v", f.LocalAccessRatio)
	}
	near(t, "CPU", chase.CPU.Or(0), 1, 1e-6)
}

// Arrivals and departures: workloads are in windows while they are present, and what a
// departed one got is reported once more.
func TestComingAndGoing(t *testing.T) {
	a, b := serving("a", 1, 10), serving("b", 1, 10)
	a.Depart, b.Arrive = 2*time.Minute, time.Minute
	w := world(t, testConfig(t, a, b))
	ids := func() (s string) {
		for _, wl := range w.Window().Workloads {
			s += wl.ID
		}
		return s
	}
	for i, want := range []string{"/a", "/a/b", "/b", "/b"} {
		if got := ids(); got != want {
			t.Errorf("minute %d: %q, want %q", i, got, want)
		}
		w.Run(time.Minute)
	}
	truths := w.Truth()
	if len(truths) != 2 || truths[0].Seconds != 120 || truths[1].Seconds != 180 {
		t.Errorf("truth: %+v", truths)
	}
	if truths = w.Truth(); len(truths) != 1 {
		t.Errorf("then: %+v", truths)
	}
}
