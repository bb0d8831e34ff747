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
)

// A move is remembered for the horizon, and not for longer when the clock is set back by
// a day; a clock that is set forward forgets it, which costs one move more.
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
