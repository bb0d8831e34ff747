// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"testing"
)

// probed is the output of `homenode-lab probe`.
type probed struct {
	Threads []struct {
		Ops                             uint64
		Elapsed, Quiet                  float64 // ns of the model's clock
		Cycles, Instructions, LLCMisses float64 // of user mode
	}
	Moved *struct{ Pages, Failed, Size int }
}

func probeIn(t *testing.T, g *Guest, args ...string) probed {
	t.Helper()
	out := mustRun(t, g, append([]string{"homenode-lab", "probe"}, args...)...)
	var r probed
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// Parity: the prober measures the configured figures of the lab. A chase over 4 MiB
// misses a 512 KiB cache at every load.
func TestLabProbe(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	model := g.Shape.Model
	for node, distance := range []int{10, 21} {
		r := probeIn(t, g, "--cpus", "0", "--node", fmt.Sprint(node), "--bytes", "4MiB")
		if len(r.Threads) != 1 {
			t.Fatalf("%+v", r)
		}
		c, what := r.Threads[0], fmt.Sprintf("CPU 0, memory on node %d", node)
		ops := float64(c.Ops)
		t.Logf("%s: %.0f loads of %.1f cycles, %.1f with interruptions, %.1f of user mode; %.2f instructions", what, ops,
			c.Quiet/ops*float64(model.MHz)/1000, c.Elapsed/ops*float64(model.MHz)/1000, c.Cycles/ops, c.Instructions/ops)
		// the thread's own instructions, which rise with its interruptions
		within(t, what+": LLC misses", c.LLCMisses, ops, 0.02)
		within(t, what+": ns for 1000 loads", 1000*c.Quiet/ops, 1e6*float64(model.DRAMCycles[distance]+1)/float64(model.MHz), 0.03)
	}
	if m := probeIn(t, g, "--work", "move", "--node", "0", "--to", "1", "--bytes", "1MiB").Moved; m == nil || m.Pages != 256 || m.Failed != 0 || m.Size != 4096 {
		t.Errorf("moved: %+v", m)
	}
}

// The lab counts an instruction as a cycle: the other instructions of a loop, beside its
// loads and stores, reduce the measured bandwidth.
func TestLabMixes(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	for _, mix := range [][2]int{{1, 0}, {3, 1}, {2, 1}, {1, 1}, {0, 1}} {
		r := probeIn(t, g, "--cpus", "0", "--work", "mixed", "--reads", fmt.Sprint(mix[0]), "--writes", fmt.Sprint(mix[1]))
		if len(r.Threads) != 1 || r.Threads[0].Ops == 0 {
			t.Fatalf("%+v", r)
		}
		c := r.Threads[0]
		t.Logf("%v: %.2f instructions a line, %.1f MB/s", mix, c.Instructions/float64(c.Ops), float64(c.Ops)*64e3/c.Quiet)
		if n := c.Instructions / float64(c.Ops); n < 1 || n >= 4 { // 2 to 3, with a margin for interruptions
			t.Errorf("%v: %.2f instructions a line", mix, n)
		}
	}
}

// Memory interleaved over two nodes has the mean latency of both.
func TestLabInterleave(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	chase := func(args ...string) float64 {
		r := probeIn(t, g, append([]string{"--cpus", "0", "--bytes", "4MiB"}, args...)...)
		if len(r.Threads) != 1 || r.Threads[0].Ops == 0 {
			t.Fatalf("%+v", r)
		}
		return r.Threads[0].Quiet / float64(r.Threads[0].Ops)
	}
	near, far, both := chase("--node", "0"), chase("--node", "1"), chase("--policy", "interleave", "--nodes", "0-1")
	within(t, "a load of interleaved memory, ns", both, (near+far)/2, 0.05)
}
