// SPDX-License-Identifier: Apache-2.0

// Package lakew is Lakew et al.'s (arXiv 2501.01356) experiments, run again in the
// arena: their machine, loads and comparisons, and what became of each statement.
//
//	sizes × applications ─ seed: order, times of arrival ─▶ Plan ─ arena.Run ─▶ Result ─┐
//	one VM, its memory at each distance ─────────────────▶ Curve ───────────────────────┴─▶ Judge ─▶ rows
//
// What the paper leaves open (which application is in which VM, how much of its memory
// a VM touches, when it comes) was decided before policies were compared: decision 0025.
//
// It is NOT for: the policies (policy), or the applications (sim/apps).
package lakew
