// SPDX-License-Identifier: Apache-2.0

// Package papers checks the statements of papers in the simulator. It has each paper's
// experiments as plans of the arena, and one table with a row for every statement.
//
//	Experiments ─ Plan ─▶ arena.Run ─▶ Result ─ Judge ─▶ rows ┐
//	sim/scenarios/mao-*.yaml ─▶ scenario.Result ─ maoFigures ──┴─▶ Statements
//
// MAO's statements are here (mao_judge.go: in the arena; mao_figures.go: in the scenarios
// made for its services). Papers with experiments of their own have a folder each:
// papers/rao, papers/lakew.
//
// It is NOT for: the policies (policy), running (sim/arena, sim/scenario), or showing
// (report).
package papers
