// SPDX-License-Identifier: Apache-2.0

// Package simulation shows what came of simulated worlds: text for a terminal, and
// self-contained pages with charts. Only homenode-lab links it.
//
//	scenario.Result ──▶ check ──▶ clean ──▶ comparisons (paired by seed) ──▶ tables, answer ─▶ Scenario
//	                                    └─▶ charts (geometry only) ────────▶ with the same ──▶ ScenarioHTML
//	arena.Result ──▶ Summarise ──▶ clean ──▶ view ──▶ rankings, papers' rows ─▶ Arena
//	                                           └────▶ the same, matrix, dots ─▶ ArenaHTML
//
// The faces of a result share one view, so they cannot disagree. The answer stands first,
// whether it is good or bad; what cannot be compared is named, and is never 0. Where seeds
// are too few for an interval there is none, and it says so. A paper's figure stands beside
// ours with a verdict and why. Every face says that its figures are modelled: a result that
// says anything else of itself is refused.
//
// It is NOT for: running a scenario or policies, their statistics, judging a paper's
// statements, or reading and writing a result (sim/scenario, sim/arena and the rooms above).
package simulation
