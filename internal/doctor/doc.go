// SPDX-License-Identifier: Apache-2.0

// Package doctor says what is wrong with a host's placement, what it costs, why,
// and what to type.
//
//	Snapshot ──Examine──▶ Report{Verdict, Findings by cost}
//
// The cost of time is computed in one place (lost.go). The thresholds of the rules, and
// their sources, are in Config. A rule is one file; two rules share a file where they
// share what they read (balancing, samples, guests).
//
// Every rule is a pure function of a snapshot. A finding carries its evidence. A rule
// without a figure that it needs says so and does not guess.
//
// Not for: reading anything (kernel), changing anything.
package doctor
