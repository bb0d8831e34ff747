// SPDX-License-Identifier: Apache-2.0

// Package migration prints what became of moving a workload's memory: before and
// after by kind, what stayed and why, and what was expected of it.
//
//	migration.Report ──▶ clean ──▶ rows (bytes by kind) ──▶ table ─┐
//	                          └──▶ expected and achieved, calls ───┴──▶ Text
//
// A terminal that has no room for a column for every node gets one for those that
// were moved to, and one for the others. Unknown is printed as unknown, never as 0.
//
// It is NOT for: moving, estimating, or the JSON form (internal/migration).
package migration
