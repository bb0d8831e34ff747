// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/snapshot"
)

const snapshotLimit = 1 << 28 // bytes: a snapshot of 10,000 processes with mappings is about 100 MiB

// Snapshot reads one that was saved.
func Snapshot(path string) (snapshot.Snapshot, error) {
	data, err := unix.ReadAtMost(path, snapshotLimit)
	if err != nil {
		return snapshot.Snapshot{}, exit.BadInput(fmt.Errorf("read snapshot: %w", err))
	}
	s, err := snapshot.Decode(data)
	if err != nil {
		return snapshot.Snapshot{}, exit.BadInput(Explain(path, fmt.Errorf("%s: %w", path, err)))
	}
	return s, nil
}
