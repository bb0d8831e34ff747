// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// Setting the clock makes no bind late: the time that it takes is counted in windows.
func TestClockStepsOnTheWay(t *testing.T) {
	for _, step := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour} {
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1}, 2, 64*unit.GiB)
		line(h, "workload /w0 cpu=1 cpus=0-3 mems=0-1 anon=4GiB local=1000000 remote=1000000")
		actions := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
		for n := range 30 {
			w := h.Window()
			if n >= 5 { // its memory is going ahead
				w.At = w.At.Add(step)
			}
			next, steps, outcomes := Step(h.Machine, cfg, st, actions, w)
			actions, st = nil, next
			if len(outcomes) > 0 {
				t.Fatalf("a step of %v: %+v", step, outcomes)
			}
			h.Apply(steps)
		}
		if j, _ := st.Job("/w0"); !j.Way.Over || j.Way.Took < 16*time.Second || j.Way.Took > 20*time.Second {
			t.Errorf("a step of %v: %s %v", step, j.Stage, j.Way.Took)
		}
	}
}

// A move is remembered for the horizon, and not longer when the clock is set back by a
// day. A clock that is set forward forgets it, which costs one more move.
func TestClockSteps(t *testing.T) {
	cfg := DefaultConfig()
	at := time.Unix(1_000_000, 0)
	moved := action.Outcome{Status: action.Done, Moved: unit.GiB, Step: action.Step{Kind: action.MovePages, Workload: "/a", From: set.FromNodes(0), Nodes: set.FromNodes(1)}}
	for _, c := range []struct {
		step time.Duration
		left int // of the past, right after the step
	}{{0, 1}, {-24 * time.Hour, 1}, {24 * time.Hour, 0}} {
		st, _, _ := Step(machine.Machine{}, cfg, State{}, nil, window.Window{Seq: 1, At: at, Length: 10 * time.Second, Outcomes: []action.Outcome{moved}})
		now := at.Add(c.step)
		for i := range 2 + int(cfg.Horizon/(10*time.Second)) {
			now = now.Add(10 * time.Second)
			st, _, _ = Step(machine.Machine{}, cfg, st, nil, window.Window{Seq: uint64(i + 2), At: now, Length: 10 * time.Second})
			if i == 0 && len(st.Past) != c.left {
				t.Errorf("a step of %v: %d moves are remembered", c.step, len(st.Past))
			}
		}
		if len(st.Past) != 0 {
			t.Errorf("a step of %v: the move is still remembered after the horizon", c.step)
		}
	}
}
