// SPDX-License-Identifier: Apache-2.0

// Package lakew runs Lakew et al.'s experiments (arXiv 2501.01356) in the arena: their
// machine, loads and comparisons, and a verdict on each statement.
//
//	sizes × applications ─ seed: order, times of arrival ─▶ Plan ─ arena.Run ─▶ Result ─┐
//	one VM, its memory at each distance ─────────────────▶ Curve ───────────────────────┴─▶ Judge ─▶ rows
//
// What the paper leaves open was decided before policies were compared: which application
// is in which VM, how much of its memory a VM touches, and when it arrives (decision 0025).
//
// It is NOT for: the policies (policy), or the applications (sim/catalog).
package lakew
