// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"

	"homenode/internal/action"
	"homenode/internal/control"
)

// background runs a window's moves while the screen continues. A move takes as long as its
// rate requires, and Plan, Apply and Close must not wait for it. Only the next window
// waits.
type background struct {
	cancel   context.CancelFunc
	done     chan struct{}
	outcomes []action.Outcome // set once it is done
}

// startMoves begins them. They may take until the next window is due; the rest
// continues after it. The lock is held.
func (h *Host) startMoves(ctx context.Context, take func(context.Context, action.Step) action.Outcome, moves []action.Step) {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, done: make(chan struct{})}
	h.moving = b
	limit := max(1, time.Until(h.next)) // 0 would mean no limit
	go func() {
		defer close(b.done)
		defer cancel()
		control.InOrder{Take: take, Now: time.Now, MoveLimit: limit}.Apply(ctx, moves, func(o action.Outcome) {
			b.outcomes = append(b.outcomes, o)
		})
	}()
}

// awaitMoves waits until the last window's moves have ended, and ends them if an action
// waits. The lock is not held.
func (h *Host) awaitMoves(ctx context.Context) error {
	for {
		h.mu.Lock()
		b, hurry := h.moving, len(h.wanted) > 0
		h.mu.Unlock()
		if b == nil {
			return nil
		}
		if hurry {
			b.cancel()
		}
		select {
		case <-b.done:
			return nil
		case <-h.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takeMoved returns the outcomes of the last window's moves. They have ended, and the
// lock is held.
func (h *Host) takeMoved() (outcomes []action.Outcome) {
	if h.moving != nil {
		outcomes, h.moving = h.moving.outcomes, nil
	}
	return outcomes
}
