// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// steady is a server in its usual state: 2 nodes of 16 CPUs and 20 workloads, 10 of
// them bound (5 of which have some page cache elsewhere), 3 moving, 7 left alone.
func steady() (machine.Machine, State, window.Window) {
	h, st, cfg := &windowtest.Host{}, State{}, DefaultConfig()
	h.Shape([]int{0, 1}, 16, 128*unit.GiB)
	h.Length = time.Minute
	id := func(i int) string { return fmt.Sprintf("/system.slice/service-%02d", i) }
	for i := range 20 {
		line(h, "workload %s approved cpu=1 cpus=0-31 mems=0-1 anon=1GiB,1GiB local=5000000 remote=5000000", id(i))
	}
	for i := 10; i < 13; i++ {
		line(h, "workload %s anon=30GiB,30GiB local=5000000000 remote=5000000000", id(i))
	}
	for seq := range 40 {
		var actions []action.Action
		for i := range 13 {
			if seq == 0 && i < 10 || seq == 39 && i >= 10 {
				actions = append(actions, action.Action{Kind: action.Bind, Workload: id(i), Nodes: set.FromNodes(i % 2), Reason: action.Reason{
					Rule: "mao.bind", Workload: id(i),
					Numbers: []action.Number{{Name: "local_access_ratio", Value: unit.Measured(0.5, "perf"), Unit: "ratio"}},
				}})
			}
		}
		next, steps, outcomes := Step(h.Machine, cfg, st, actions, h.Window())
		h.Apply(steps)
		h.Report(outcomes...)
		st = next
	}
	for i := range 5 {
		line(h, "workload %s file=16MiB,16MiB local=10000000 remote=10000", id(i))
	}
	for range 3 { // the moves begin, and the bound ones have seen their page cache
		next, steps, _ := Step(h.Machine, cfg, st, nil, h.Window())
		h.Apply(steps)
		st = next
	}
	return h.Machine, st, h.Window()
}

func TestSteady(t *testing.T) {
	m, st, w := steady()
	next, steps, _ := Step(m, DefaultConfig(), st, nil, w)
	stages := map[Stage]int{}
	for _, j := range next.Jobs {
		stages[j.Stage]++
	}
	if stages[StageBound] != 10 || stages[StagePages] != 3 || len(steps) != 3 {
		t.Errorf("not the steady state: %v, %v", stages, steps)
	}
}

func BenchmarkSteadyStep(b *testing.B) {
	m, st, w := steady()
	cfg := DefaultConfig()
	b.ReportAllocs()
	for b.Loop() {
		Step(m, cfg, st, nil, w)
	}
}
