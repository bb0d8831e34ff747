// SPDX-License-Identifier: Apache-2.0

// Package history keeps what nodes were used in past windows across restarts: MAO's
// strategy B judges a node by the 95th percentile of its own past, and a restart is
// no reason to forget it.
//
//	mao.State ─ Histories ─▶ history.json ─▶ WithHistories ─▶ mao.State
//
// The file is of one machine: nodes and their CPUs. It is NOT for the rest of the
// state: bindings are put back when an agent ends, so that a new one starts without.
package history
