// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"fmt"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// large is a machine of eight nodes and 256 CPUs (or more), with vCPUs in VMs of one size.
// Half of the VMs are tagged, the others are inferred.
func large(threads, each int) (machine.Machine, *toy) {
	w := newToy(1, 8, 32)
	for i := range threads / each {
		l := w.addLoad(fmt.Sprintf("/machine.slice/vm-%04d", i), each, i*each, func(k int) int { return (i + k) % 8 }, byDistance)
		l.sensitive = unit.OptOf(true, i%2 == 0)
	}
	return w.machine, w
}

// steady is a state in full operation, 3 s old: some threads explore, some move, most stay.
func steady(tb testing.TB, threads, each int) (machine.Machine, State, window.Window) {
	m, w := large(threads, each)
	st := State{}
	for range 300 {
		var actions []action.Action
		st, actions, _ = Step(m, DefaultConfig(), st, w.window())
		w.apply(tb, actions)
	}
	return m, st, w.window()
}

// BenchmarkStep: the goal is 1 ms for 2,000 vCPUs.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct{ threads, each int }{{2, 2}, {16, 4}, {64, 8}, {256, 8}, {2000, 8}, {2000, 1}, {2000, 100}} {
		b.Run(fmt.Sprintf("threads=%d/each=%d", c.threads, c.each), func(b *testing.B) {
			m, st, w := steady(b, c.threads, c.each)
			b.ReportAllocs()
			for b.Loop() {
				Step(m, DefaultConfig(), st, w)
			}
		})
	}
}

// The allocations of a step do not grow with the threads: they are some slices of any
// length, and what each action and each of many nodes takes.
func TestAllocations(t *testing.T) {
	count := func(threads int) float64 {
		m, st, w := steady(t, threads, 8)
		_, actions, _ := Step(m, DefaultConfig(), st, w)
		return testing.AllocsPerRun(10, func() { Step(m, DefaultConfig(), st, w) }) - 4*float64(len(actions))
	}
	if few, many := count(64), count(2000); many > few+20 {
		t.Errorf("%g allocations for 64 threads, %g for 2,000", few, many)
	}
}
