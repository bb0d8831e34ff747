// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrHangs: a loop that changes settings hangs, and not everything could be put back.
var ErrHangs = errors.New("'homenode restore', or the next start, puts back what is on record")

// TakeFrom takes the journal away from a loop that hangs and may hold its locks, as if
// the process had been killed there. It can be opened again, and the hanging loop changes
// nothing any more. That is impossible while the loop is stuck within a write, which may
// land later. false: the loop has ended meanwhile.
func (j *Journal) TakeFrom(ctx context.Context, ended func() bool) (taken bool, err error) {
	for !j.Abandon() {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("a write to a cgroup, or to its manager, takes too long: %w", ErrHangs)
		case <-time.After(time.Second / 10):
		}
		if ended() {
			return false, nil
		}
	}
	return true, nil
}

// RestoreAnew opens the journal of a directory and puts everything back.
func RestoreAnew(ctx context.Context, dir string, owner Owner) ([]Restored, error) {
	j, err := Open(dir)
	if err != nil {
		return nil, err
	}
	restored, err := j.Restore(ctx, owner)
	return restored, errors.Join(err, j.Compact(), j.Close())
}
