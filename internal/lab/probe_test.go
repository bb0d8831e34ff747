// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"testing"
)

// probed is what `homenode lab probe` prints.
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
	out := mustRun(t, g, append([]string{"homenode", "lab", "probe"}, args...)...)
	var r probed
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r
}

// Parity: what the prober measures is what the lab was told to be. A chase over
// 4 MiB misses a 512 KiB cache at every load.
func TestLabProbe(t *testing.T) {
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "pace")
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
		within(t, what+": LLC misses", c.LLCMisses, ops, 0.01)
		within(t, what+": ns for 1000 loads", 1000*c.Quiet/ops, 1e6*float64(model.DRAMCycles[distance]+1)/float64(model.MHz), 0.03)
		within(t, what+": cycles for 1000 loads", 1000*c.Cycles/ops, 1000*float64(model.DRAMCycles[distance]+1), 0.05)
	}
	if m := probeIn(t, g, "--work", "move", "--node", "0", "--to", "1", "--bytes", "1MiB").Moved; m == nil || m.Pages != 256 || m.Failed != 0 || m.Size != 4096 {
		t.Errorf("moved: %+v", m)
	}
}
