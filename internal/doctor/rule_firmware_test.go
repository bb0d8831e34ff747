// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"homenode/internal/snapshot"
)

// Only a doubt about nodes keeps homenode from binding, and the remedy says which it is.
func TestFirmwareDoubtsSayWhatTheyPrevent(t *testing.T) {
	for _, nodes := range []bool{false, true} {
		var s snapshot.Snapshot
		s.Machine.PackageDoubts = []string{"the sibling lists have 4 packages"}
		if nodes {
			s.Machine.Doubts = []string{"nodes 0-1 all claim cpus 3"}
		}
		found, _ := firmwareDoubts(s, Config{})
		if len(found) != 1 || strings.Contains(found[0].Remedy, "binds nothing") != nodes || len(found[0].Evidence) != len(s.Machine.AllDoubts()) {
			t.Errorf("nodes %v: %+v", nodes, found)
		}
	}
}
