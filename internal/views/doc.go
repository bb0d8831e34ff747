// SPDX-License-Identifier: Apache-2.0

// Package views prints, as text for a terminal, what commands about the agent and about
// recordings have found out: status, why, brm, replay, classes.
//
//	a value ─▶ a table, and sentences; names from outside are made fit to print
//
// Not for: JSON, which is the values' own; tables of machines and snapshots, which are
// report's; deciding.
package views
