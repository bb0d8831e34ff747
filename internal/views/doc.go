// SPDX-License-Identifier: Apache-2.0

// Package views prints the results of commands about the agent and about recordings as
// text for a terminal: status, why, brm, replay, classes.
//
//	a value ─▶ a table and sentences; foreign names are made safe to print
//
// Not for: JSON, which the values have themselves; tables of machines and snapshots,
// which are in report; decisions.
package views
