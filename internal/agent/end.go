// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"homenode/internal/journal"
)

// endLimit bounds how long the current round may take once the agent has to end: reading
// stops at the next workload, moving at the next batch. A higher limit waits longer for a
// read that never returns. A lower one gives up on slow reads, which is safe but is
// reported as an error. Together with putBackLimit it is less than the unit's
// TimeoutStopSec.
const endLimit = 10 * time.Second

// running is shared by the loop and by end.
type running struct {
	ended   chan error    // receives when the loop is over
	back    chan struct{} // closed when the loop begins to restore
	state   string
	restore func(context.Context) ([]journal.Restored, error)
}

// end waits for the loop, but not for a loop that hangs. A read can hang for ever: of a
// process whose memory map is locked (for example in the mmap of a file whose FUSE
// server does not answer), or of a file of such a server.
//
//  1. The loop has endLimit to finish, and putBackLimit more to restore.
//  2. A stuck loop may hold the journal. end gives the journal up, as if the process had
//     been killed at that point, and opens it again: what can be restored after a kill at
//     any point can be restored now. The stuck thread changes nothing more when it wakes up.
//  3. If it is stuck within a write, nothing can be restored: that write may still land.
func (a *Agent) end(r *running) error {
	over := time.NewTimer(endLimit + putBackLimit)
	defer over.Stop()
	patience := time.NewTimer(endLimit)
	defer patience.Stop()
	select { // 1
	case err := <-r.ended:
		return err
	case <-r.back:
	case <-patience.C:
		if a.journal == nil {
			a.o.Log.Error("the last round hangs: ended without it")
			return nil
		}
		return a.endWithout(r, over.C)
	}
	select {
	case err := <-r.ended:
		return err
	case <-over.C:
		return fmt.Errorf("putting back takes longer than %v: %w", putBackLimit, journal.ErrHangs)
	}
}

// endWithout is steps 2 and 3.
func (a *Agent) endWithout(r *running, over <-chan time.Time) error {
	a.o.Log.Error("the last round hangs: what was set is put back without it")
	a.pulse.end()
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	if taken, err := a.journal.TakeFrom(ctx, func() bool { return len(r.ended) > 0 }); err != nil {
		return err
	} else if !taken {
		return <-r.ended
	}
	done := make(chan error, 1)
	go func() { done <- a.restoreWithout(r) }()
	select {
	case err := <-done:
		return err
	case <-over:
		return fmt.Errorf("putting back takes longer than %v: %w", putBackLimit, journal.ErrHangs)
	}
}

func (a *Agent) restoreWithout(r *running) error {
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	restored, err := r.restore(ctx)
	for _, x := range restored {
		a.logRestored("", x)
	}
	_ = os.Remove(filepath.Join(r.state, statusName))
	return err
}
