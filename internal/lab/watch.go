// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"homenode/internal/lab/model"
)

// ErrStands means that a guest's clock no longer moves: QEMU hangs. A slow host, or one
// that was suspended, makes a guest slow, but its clock still moves.
var ErrStands = errors.New("the guest's clock stands still")

const (
	standsFor = 3 * time.Minute        // of the host: a starved guest moves within seconds
	lookEvery = 200 * time.Millisecond // of the host
)

// Within returns a context that ends once this much of the guest's own time has passed,
// or when its clock stands still. The guest gets that time, however slow the host is.
func (g *Guest) Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if err := g.watch(ctx, limit, standsFor); err != nil {
			cancel(err)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// watch returns why a guest is no longer waited for; nil: ctx ended first.
func (g *Guest) watch(ctx context.Context, limit, stands time.Duration) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	first, moved := g.seconds(), time.Now()
	for last := first; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := g.seconds()
		if now != last {
			last, moved = now, time.Now()
		}
		if now-first > limit.Seconds() {
			return fmt.Errorf("%w: %v of the guest's clock have passed", context.DeadlineExceeded, limit)
		}
		if time.Since(moved) > stands {
			return fmt.Errorf("%w for %v of the host's, at %.3f s", ErrStands, stands, now)
		}
	}
}

// seconds is the guest's clock; 0 before it starts.
func (g *Guest) seconds() float64 {
	c, err := g.Clock()
	if err != nil {
		return 0
	}
	return c.Seconds()
}

// setIdleRate sets the rate of this guest.
func (g *Guest) setIdleRate(rate uint64) error {
	return model.SetIdleRate(filepath.Join(g.Dir, sharedName), rate)
}
