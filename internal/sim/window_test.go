// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A workload that came 5 s before the window's end used its CPU for 5 s of 60. A process
// that reads counters at the windows cannot know that. From the second window on it is
// known.
func TestFirstWindow(t *testing.T) {
	known := func(wl window.Workload) (all [7]bool) {
		return [7]bool{wl.CPU.Known(), wl.CPUByNode[0].Known(), wl.Cycles.Known(), wl.Instructions.Known(), wl.StallCycles.Known(), wl.LocalLoads.Known(), wl.RemoteLoads.Known()}
	}
	s := chasing("a", 1)
	s.Arrive = 55 * time.Second
	w := world(t, testConfig(t, s, chasing("b", 1)))
	w.Run(time.Minute)
	if got := on(t, w, "/a"); known(got) != [7]bool{} || got.CPU.From != firstWindow || got.Tasks.Or(0) != 1 || got.AnonByNode[0].Or(0)+got.AnonByNode[1].Or(0) != 32*unit.MiB {
		t.Errorf("in its first window: %+v", got)
	}
	w.Run(time.Minute)
	got := on(t, w, "/a")
	if known(got) == [7]bool{} {
		t.Errorf("in its second window: %+v", got)
	}
	near(t, "CPU", got.CPU.Or(0), 1, 1e-6)
	near(t, "cycles", float64(got.Cycles.Or(0)), 60*w.Config.System.Hz, 1e-6)
	if got := on(t, w, "/a"); known(got) != [7]bool{} || got.Cycles.From != noLength {
		t.Errorf("in a window of no length: %+v", got)
	}
}

// Churn is exponential: cut into steps, the same share is left. Workloads that stand still
// neither grow nor churn.
func TestGrowthByRunning(t *testing.T) {
	stays := func(step time.Duration, freeze bool) (near, anon unit.Bytes) {
		s := serving("a", 2, 100)
		s.Start.Touch, s.Memory.Churn = set.FromNodes(1), 4
		s.Start.CPUs = set.FromCPUs(0, 1)
		if s.Memory.Growth = 0; freeze {
			s.Memory.Growth = 64 * unit.MiB
		}
		c := testConfig(t, s)
		c.Step = step
		w := world(t, c)
		if freeze {
			wl, _ := w.find("/a")
			wl.stall = 7200
		}
		w.Run(time.Hour)
		got := on(t, w, "/a").AnonByNode
		return got[1].Or(0), got[0].Or(0) + got[1].Or(0)
	}
	hour, _ := stays(time.Hour, false)
	minutes, _ := stays(time.Minute, false)
	near(t, "left of 128 MiB after an hour at 4 an hour", float64(hour), 0.018316*float64(128*unit.MiB), 0.002)
	near(t, "in steps of a minute", float64(minutes), float64(hour), 0.002)
	left, all := stays(time.Minute, true)
	if left != 128*unit.MiB || all != left {
		t.Errorf("frozen: %v of %v where it was", left, all)
	}
}
