// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"

	"homenode/internal/action"
)

// InOrder is an Applier that takes one step after another:
//
//  1. After a step that was not done, the same workload's further steps wait for the next
//     window. Pinning a thread does not depend on its workload's other steps.
//  2. A dry run continues: each step would have been done.
//  3. Once the context has ended no step begins, not even the first move.
//  4. The page moves of a window have MoveLimit together. The first is taken in any case,
//     or a short limit would never move anything; then those for which time is left. Each
//     has a deadline; the rest continues in a later window.
type InOrder struct {
	// Take takes one step. An outcome without a status belongs to a step that
	// continues.
	Take func(ctx context.Context, s action.Step) action.Outcome
	// Now is the clock. If it is nil, the time of a step is unknown, and moves have no
	// limit.
	Now func() time.Time
	// MoveLimit is how long the moves of a window may take together; 0: no limit.
	MoveLimit time.Duration
	// Later gets the page moves that are due, instead of Take; nil: Take gets them too.
	Later func(ctx context.Context, moves []action.Step)
}

// Apply takes the steps.
func (a InOrder) Apply(ctx context.Context, steps []action.Step, tell func(action.Outcome)) {
	t := turn{InOrder: a}
	for _, s := range steps {
		if ctx.Err() != nil { // 3
			return
		}
		if !t.mayTake(s) {
			continue
		}
		if o := t.take(ctx, s); o.Status != "" {
			t.note(s, o.Status)
			tell(o)
		}
	}
	if len(t.later) > 0 {
		a.Later(ctx, t.later)
	}
}

// turn is one Apply.
type turn struct {
	InOrder
	stopped map[string]bool // workloads with a step that was not done
	end     time.Time       // end of the moves' time; zero: none has begun, or they have no limit
	later   []action.Step
}

// mayTake is false for a step that waits for the next window, or that Later
// gets.
func (t *turn) mayTake(s action.Step) bool {
	if s.Kind != action.PinThread && t.stopped[s.Workload] { // 1
		return false
	}
	if s.Kind != action.MovePages {
		return true
	}
	if t.Later != nil {
		t.later = append(t.later, s)
		return false
	}
	return t.end.IsZero() || t.Now().Before(t.end) // 4
}

func (t *turn) take(ctx context.Context, s action.Step) action.Outcome {
	if t.Now == nil {
		return t.Take(ctx, s)
	}
	began := t.Now()
	if s.Kind == action.MovePages && t.MoveLimit > 0 { // 4
		if t.end.IsZero() {
			t.end = began.Add(t.MoveLimit)
		}
		limited, cancel := context.WithDeadline(ctx, t.end)
		defer cancel()
		ctx = limited
	}
	o := t.Take(ctx, s)
	o.Took = t.Now().Sub(began)
	return o
}

func (t *turn) note(s action.Step, status action.Status) {
	switch status {
	case action.Done, action.InProgress, action.DryRun: // 2
		return
	}
	if s.Kind == action.PinThread {
		return
	}
	if t.stopped == nil {
		t.stopped = map[string]bool{}
	}
	t.stopped[s.Workload] = true
}
