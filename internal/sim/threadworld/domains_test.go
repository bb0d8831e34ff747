// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"
	"math"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/linux"
)

// built is a machine of package machines, without NUMA balancing.
func built(t testing.TB, name string, specs ...sim.Spec) sim.Config {
	t.Helper()
	b, ok := catalog.MachineNamed(name)
	if !ok {
		t.Fatalf("no machine %s", name)
	}
	m, y := b.Make()
	c := sim.Config{Machine: m, System: y, Linux: linux.DefaultSettings(), Specs: specs, Seed: 3, Start: start}
	c.Linux.NUMABalancing = false
	return c
}

// asking is threads without memory that each want a share of a CPU.
func asking(name string, threads int, share float64, hz float64) sim.Spec {
	s := spinning(name, threads)
	s.Demand.Rate, s.Demand.Wakes = share*float64(threads)*hz/s.Work.Cycles, 0
	return s
}

// TestLevels: two sockets are one level. Six nodes of a server at 16 and 22 are two levels
// (one, for a node that is next to all), and the torus has two more.
func TestLevels(t *testing.T) {
	w := world(t, built(t, catalog.DualE5620, spinning("a", 1)))
	if len(w.levels) != 2 || w.levels[0].cpus != 8 || !w.levels[0].sibling || w.levels[0].together != 1 {
		t.Errorf("two sockets: %+v", w.levels)
	}
	w = world(t, built(t, catalog.Torus, spinning("a", 1)))
	for n := range w.nodes {
		last := 0.0
		for _, i := range w.nodes[n].levels {
			v := &w.levels[i]
			covered := map[int]bool{}
			for _, g := range append([][]int{v.local}, v.groups...) {
				for _, d := range g {
					covered[d] = true
				}
			}
			if v.cpus <= last || len(covered)*8 != int(v.cpus) || len(v.groups) == 0 {
				t.Errorf("node %d: level %+v", n, *v)
			}
			last = v.cpus
		}
		if k := len(w.nodes[n].levels); k < 3 || k > 4 || last != 288 {
			t.Errorf("node %d: %d levels, %v CPUs", n, k, last)
		}
	}
}

// TestStartsNear: exec and fork stay within reclaimDistance, which is one server of the
// torus.
func TestStartsNear(t *testing.T) {
	for _, n := range []int{4, 16, 72} {
		w := world(t, built(t, catalog.Torus, spinning("a", n)))
		servers := map[int]bool{}
		for _, x := range w.ids {
			servers[w.cpus[x.cpu].node/6] = true
		}
		if len(servers) != 1 {
			t.Errorf("%d threads start on %d servers", n, len(servers))
		}
	}
}

// TestSwapsCounted: on two nodes a thread is placed anew once in 30 s, half of the times on
// the other node, as in sim/linux.
func TestSwapsCounted(t *testing.T) {
	var specs []sim.Spec
	for i := range 8 {
		specs = append(specs, spinning(fmt.Sprint("w", i), 1))
	}
	w := world(t, built(t, catalog.DualE5620, specs...))
	w.Run(6000 * time.Second)
	moves := 0
	for _, x := range w.Threads() {
		moves += x.Moves
	}
	if want := 6000 * swapRate / 2; math.Abs(float64(moves)/8/want-1) > 0.15 {
		t.Errorf("%v changes of node a thread, not %v", float64(moves)/8, want)
	}
}

// TestSwapsStayNear: few threads of a busy torus move to another server.
func TestSwapsStayNear(t *testing.T) {
	w := world(t, built(t, catalog.Torus, spinning("a", 288)))
	w.Run(10 * time.Second) // until all threads have a CPU
	near, far := 0, 0
	for range 50 {
		was := make([]int, len(w.ids))
		for i, x := range w.ids {
			was[i] = w.cpus[x.cpu].node
		}
		w.Run(time.Second)
		for i, x := range w.ids {
			switch now := w.cpus[x.cpu].node; {
			case now == was[i]:
			case now/6 == was[i]/6:
				near++
			default:
				far++
			}
		}
	}
	if near < 100 || far > near/10 {
		t.Errorf("%d changes of node within servers, %d between", near, far)
	}
}

// TestHalfBusyEvenOut: threads that were bound to a node and are released spread again,
// though no CPU ever had more than it could do.
func TestHalfBusyEvenOut(t *testing.T) {
	for _, share := range []float64{0.3, 0.4, 0.45} {
		c := built(t, catalog.DualE5620)
		c.Specs = []sim.Spec{asking("a", 8, share, c.System.Hz)}
		w := world(t, c)
		w.Apply([]action.Step{{Workload: "/a", Kind: action.SetCPUs, CPUs: c.Machine.Nodes[0].CPUs}})
		w.Run(2 * time.Second)
		w.Apply([]action.Step{{Workload: "/a", Kind: action.Restore}})
		mean := 0.0
		for range 20 {
			w.Run(500 * time.Millisecond)
			mean += w.live[0].Group.On[0] / 20
		}
		if mean < 3.2 || mean > 4.8 {
			t.Errorf("share %v: %v threads on node 0", share, mean)
		}
	}
}

// TestFewStayTogether: adjust_numa_imbalance lets two threads stay where they are.
func TestFewStayTogether(t *testing.T) {
	c := built(t, catalog.DualE5620, spinning("a", 2))
	w := world(t, c)
	for _, x := range w.ids {
		w.Apply([]action.Step{{Workload: "/a", Kind: action.PinThread, Thread: x.id, CPUs: c.Machine.Nodes[0].CPUs, Release: true}})
	}
	w.Run(20 * time.Second)
	if on := w.live[0].Group.On; on[0] != 2 {
		t.Errorf("they are on %v", on)
	}
}
