// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/unit"
)

// A workload that is bound to a node grows beyond it. With widening it gets more nodes
// before the node's reserve is used, and every page that it requests. Without, the cpuset
// leaves it nothing while the other node is empty: the kernel would kill it.
func TestWidenBeforeMemoryRunsOut(t *testing.T) {
	least, refused := map[bool]unit.Ratio{}, map[bool]unit.Bytes{}
	widest := map[bool]int{}
	for _, widen := range []bool{true, false} {
		s := growing(t, widen)
		w, err := sim.NewWorld(s.world(s.Arms[0], 1))
		if err != nil {
			t.Fatal(err)
		}
		l, err := s.loop(s.Arms[0], w)
		if err != nil {
			t.Fatal(err)
		}
		least[widen] = 1
		for range int(s.Lasts / s.Period) {
			win := l.Round()
			for _, x := range w.Truth() {
				refused[widen] = max(refused[widen], x.Refused)
			}
			wl, _ := win.Workload("/grows")
			widest[widen] = max(widest[widen], wl.Binding.Mems.Len()*b2i(wl.Binding.OursMems))
			if !wl.Binding.OursMems {
				continue
			}
			free, memory := unit.Bytes(0), unit.Bytes(0)
			for _, n := range win.Nodes {
				if wl.Binding.Mems.Has(n.ID) {
					free, memory = free+n.Free.Or(0), memory+n.Memory.Or(0)
				}
			}
			least[widen] = min(least[widen], unit.Ratio(float64(free)/float64(memory)))
		}
	}
	t.Logf("least free of its nodes: %v; refused: %v; most nodes: %v", least, refused, widest)
	if refused[true] > 0 || least[true] < 0.05 {
		t.Errorf("with widening %v were refused, and %v of its nodes was free at the least: the reserve is 0.05", refused[true], least[true])
	}
	if refused[false] == 0 || least[false] > 0.01 || widest[false] != 1 {
		t.Errorf("without widening %v were refused, and %v was free: nothing was tested", refused[false], least[false])
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// growing is a machine of several nodes with a workload that takes three quarters of one
// node and doubles within two hours.
func growing(t *testing.T, widen bool) Setting {
	t.Helper()
	text := func(size unit.Bytes) string {
		return fmt.Sprintf(`schema: 1
name: grows
about: "a workload that outgrows its node"
machine: {builtin: opteron-6272}
period: 10s
step: 10s
lasts: 3h
seeds: [1]
arms:
  - {name: mao, policy: mao-b}
  - {name: none, policy: none}
mao: {widen: %v}
workloads:
  - name: grows
    threads: 4
    approved: true
    memory: {shared: %d, growth_per_hour: %d, toucher: workers}
    work:
      cycles: 2.0e6
      instructions: 3.0e6
      regions:
        - {size: %d, shared: true, accesses: 9000, parallelism: 2}
    demand: {rate: 1000}
`, widen, int64(size), int64(size/2), int64(size))
	}
	probe, err := Load(context.Background(), []byte(text(unit.GiB)), "grows.yaml", disk(scenarios))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(context.Background(), []byte(text(probe.Host.Nodes[0].Memory.Or(0)*3/4)), "grows.yaml", disk(scenarios))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
