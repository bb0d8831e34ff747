// SPDX-License-Identifier: Apache-2.0

// Package migration prints the result of moving a workload's memory: before and after
// by kind, what stayed and why, and what was expected.
//
//	migration.Report ──▶ clean ──▶ rows (bytes by kind) ──▶ table ─┐
//	                          └──▶ expected and achieved, calls ───┴──▶ Text
//
// If a terminal is too narrow for a column for every node, there is one for the target
// nodes, and one for the others. Unknown is printed as unknown, never as 0.
//
// It is NOT for: moving, estimating, or the JSON form (internal/migration).
package migration
