// SPDX-License-Identifier: Apache-2.0

// Package history keeps the nodes' use in past windows across restarts: MAO's
// strategy B judges a node by the 95th percentile of its own past, and a restart is
// no reason to forget it.
//
//	mao.State ─ Histories ─▶ history.json ─▶ WithHistories ─▶ mao.State
//
// The file belongs to one machine: its nodes and their CPUs. It is NOT for the rest
// of the state: bindings are undone when an agent ends, so a new agent starts
// without any.
package history
