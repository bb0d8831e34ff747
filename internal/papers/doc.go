// SPDX-License-Identifier: Apache-2.0

// Package papers is what became of the statements of papers: their experiments as plans of
// the arena, and one table of all statements, a row each.
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
