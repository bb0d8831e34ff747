// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
)

// background takes a window's moves while the screen goes on: a move takes as long as
// its rate says, and Plan, Apply and close must not wait for it. Of all that live does
// only the next window does.
type background struct {
	cancel   context.CancelFunc
	done     chan struct{}
	outcomes []action.Outcome // once done
}

// startMoves begins them; they end when the next window is due, what is left goes on
// after it. The first is taken in any case, or short windows would never move anything.
// The lock is held.
func (l *Live) startMoves(ctx context.Context, apply *journal.Applier, steps []action.Step, end time.Time) {
	if len(steps) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	b := &background{cancel: cancel, done: make(chan struct{})}
	l.moving = b
	go func() {
		defer close(b.done)
		defer cancel()
		for i, s := range steps {
			if i > 0 && ctx.Err() != nil {
				return
			}
			began := time.Now()
			o := apply.Apply(ctx, s)
			o.Took = time.Since(began)
			b.outcomes = append(b.outcomes, o)
		}
	}()
}

// awaitMoves waits until the last window's moves have ended, and ends them where a wish
// waits. The lock is not held.
func (l *Live) awaitMoves(ctx context.Context) error {
	for {
		l.mu.Lock()
		b, hurry := l.moving, len(l.wishes) > 0
		l.mu.Unlock()
		if b == nil {
			return nil
		}
		if hurry {
			b.cancel()
		}
		select {
		case <-b.done:
			return nil
		case <-l.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tellMoves adds what became of the moves to what the next window is told. They have
// ended, and the lock is held.
func (l *Live) tellMoves() {
	if l.moving != nil {
		l.outcomes = append(l.outcomes, l.moving.outcomes...)
		l.moving = nil
	}
}
