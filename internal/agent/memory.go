// SPDX-License-Identifier: Apache-2.0

package agent

import "runtime/debug"

const (
	// gcPercent makes the collector run when the heap has grown by a quarter instead of doubled.
	// Live data is a few MB, and a round makes as much garbage: this keeps the garbage from
	// staying resident. Go's default of 100 would save 0.6 ms of CPU time a round and take 6 MB
	// more (make bench-agent).
	gcPercent = 25
	// memoryGoal makes the collector work harder, however busy the host is, where a hostile user
	// makes live data large. Beyond it the agent goes on.
	memoryGoal = 48 << 20
)

// StaySmall bounds the garbage of this process, of whose memory others bytes are not the
// agent's. It must be called before anything is read. A test calls undo at its end.
func StaySmall(others int64) (undo func()) {
	percent, limit := debug.SetGCPercent(gcPercent), debug.SetMemoryLimit(memoryGoal+others)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
