// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// hop returns the operations, waits and remote reads in 2 s of a thread that changes
// sockets every 10 ms, or does not.
func hop(t *testing.T, s sim.Spec, hops bool) (ops, cycles float64, c *sim.Config) {
	t.Helper()
	conf := built(t, catalog.DualE5620, s)
	w := world(t, conf)
	w.Run(time.Second)
	w.Truth()
	for range 200 {
		if hops {
			to := conf.Machine.Nodes[1-w.cpus[w.ids[0].cpu].node].CPUs.IDs()[0]
			w.Apply([]action.Step{{Kind: action.PinThread, Workload: "/a", Thread: 1, CPUs: set.FromCPUs(to)}})
		}
		w.Run(10 * time.Millisecond)
	}
	x := w.Truth()[0]
	return x.Ops, x.Cycles, &conf
}

// TestColdCache: a thread that comes to another LLC brings its lines one by one. By hand,
// for a chase over 4 MiB: 65,536 lines, each costing the difference of memory and LLC. A
// stream that fits no cache, and a thread without memory, lose nothing.
func TestColdCache(t *testing.T) {
	s := chasing("a", 1)
	s.Memory.Private, s.Work.Regions[0].Size = 4*unit.MiB, 4*unit.MiB
	s.Start.Interleave = set.FromNodes(0, 1)
	stay, cycles, c := hop(t, s, false)
	gone, _, _ := hop(t, s, true)
	y := &c.System
	mean := (y.Latency[0][0] + y.Latency[0][1]) / 2
	want := 200 * float64(4*unit.MiB) / memsys.LineBytes * (mean - y.LLCCycles) / cycles
	if lost := 1 - gone/stay; math.Abs(lost/want-1) > 0.1 {
		t.Errorf("it lost %.3f of its operations, not %.3f", lost, want)
	}
	stream := chasing("a", 1)
	stream.Memory.Private, stream.Work.Regions[0].Size, stream.Work.Regions[0].Stream = 512*unit.MiB, 512*unit.MiB, true
	stream.Start.Interleave = set.FromNodes(0, 1)
	for _, x := range []sim.Spec{stream, spinning("a", 1)} {
		stay, _, _ := hop(t, x, false)
		if gone, _, _ := hop(t, x, true); math.Abs(gone/stay-1) > 0.02 {
			t.Errorf("%+v: %v operations, %v if it stays", x.Work.Regions, gone, stay)
		}
	}
}

// TestColdIsCounted: what a thread brings is in its requests, waits and reads.
func TestColdIsCounted(t *testing.T) {
	s := chasing("a", 1)
	s.Memory.Private, s.Work.Regions[0].Size = 4*unit.MiB, 4*unit.MiB
	c := built(t, catalog.DualE5620, s)
	w := world(t, c)
	w.Run(time.Second)
	w.Truth()
	w.Window()
	before := w.cpus[w.ids[0].cpu].node
	w.Apply([]action.Step{{Kind: action.SetCPUs, Workload: "/a", CPUs: c.Machine.Nodes[1-before].CPUs}})
	w.Run(100 * time.Millisecond)
	x := w.Truth()[0]
	if lines := float64(4*unit.MiB) / memsys.LineBytes; math.Abs(x.Remote/lines-1) > 0.1 {
		t.Errorf("%v remote reads, not %v", x.Remote, lines)
	}
	waits, _ := w.Window().Workloads[0].Threads[0].UncoreWaits.Get()
	least := float64(4*unit.MiB) / memsys.LineBytes * (c.System.Latency[0][1] - c.System.LLCCycles)
	if float64(waits) < least {
		t.Errorf("%v cycles of waits, not %v", waits, least)
	}
}
