// SPDX-License-Identifier: Apache-2.0

package agent

import "runtime/debug"

// memoryGoal makes the collector work harder, however busy the host is, where a hostile user
// makes live data large. Beyond it the agent goes on.
const memoryGoal = 48 << 20

// StaySmall bounds the garbage of this process, of whose memory others bytes are not the
// agent's. It must be called before anything is read. A test calls undo at its end.
func StaySmall(others int64) (undo func()) {
	limit := debug.SetMemoryLimit(memoryGoal + others)
	return func() { debug.SetMemoryLimit(limit) }
}
