// SPDX-License-Identifier: Apache-2.0

// Package simulation shows the result of a scenario in the simulated world: text for a
// terminal, and a self-contained page with charts.
//
//	scenario.Result ──▶ check ──▶ clean ──▶ comparisons (paired by seed) ──▶ tables, answer ─▶ Text
//	                                    └─▶ charts (geometry only) ────────▶ with the same ──▶ HTML
//
// The outputs share one view, so they cannot disagree. The answer stands first, good or
// bad. What cannot be compared is named, and is never 0. A paper's figures stand beside
// ours. Every output says that its figures are modelled: a result that says anything else
// about itself is refused.
//
// It is NOT for: running a scenario, or reading and writing a result (sim/scenario).
package simulation
