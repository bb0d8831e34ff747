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

// endLimit is how long a round that is under way may take once the agent has to end:
// reading stops at the next workload, moving at the next batch. Higher waits longer for a
// reading that never ends; lower gives up on slow ones, which is safe, but loud. Together
// with putBackLimit it is less than the unit's TimeoutStopSec.
const endLimit = 10 * time.Second

// errHangs says why an agent ended that has not put everything back.
var errHangs = journal.ErrHangs

// running is shared by the loop and by end.
type running struct {
	ended   chan error    // the loop is over
	back    chan struct{} // closed: the loop is putting back
	state   string
	restore func(context.Context) ([]journal.Restored, error)
}

// end waits for the loop, and does not when it hangs. A reading may hang for ever: of a
// process whose memory map is locked (in the mmap of a file whose FUSE server does not
// answer), of a file of such a server.
//
//  1. The loop has endLimit to come to its end, and all of it together putBackLimit more.
//  2. A loop that is stuck may hold the journal. That is given up, as if the process had
//     been killed there, and opened again: what can be put back after a kill at any point
//     can be now. The stuck thread changes nothing any more, whenever it wakes up.
//  3. While it is stuck within a write nothing can be put back: that write may land later.
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
		return fmt.Errorf("putting back takes longer than %v: %w", putBackLimit, errHangs)
	}
}

// endWithout is 2 and 3.
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
		return fmt.Errorf("putting back takes longer than %v: %w", putBackLimit, errHangs)
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
