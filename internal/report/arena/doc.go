// SPDX-License-Identifier: Apache-2.0

// Package arena shows a comparison of policies in the arena: text for a terminal, and a
// self-contained page with charts.
//
//	sim/arena.Result ──▶ Summarise ──▶ clean ──▶ view ──▶ rankings, papers' rows ─▶ Text
//	                                               └────▶ the same, matrix, dots ─▶ HTML
//
// Both outputs share one view, so they cannot disagree. The answer stands first, whichever
// policy it favours. Where seeds are too few for an interval there is none, and it says so.
// A paper's figure stands beside ours with a verdict and the reason. Every output says that
// its figures are modelled.
//
// It is NOT for: running policies, their statistics, or judging a paper's statements
// (sim/arena and the rooms above it).
package arena
