// SPDX-License-Identifier: Apache-2.0

// Package usage prints a snapshot for a terminal: what uses how much, and where.
//
//	snapshot.Snapshot ──▶ Host       nodes by kind, allocations, workloads
//	             ├──▶ Workload   one of them
//	             ├──▶ Processes  pages by node; of a single one by kind too
//	             └──▶ Maps       kinds with a bar per node, the biggest mappings
//
// On a narrow terminal columns are left out, the least important first. Unknown is
// printed as unknown, never as 0.
//
// It is NOT for: reading anything, or judging what it prints (doctor).
package usage
