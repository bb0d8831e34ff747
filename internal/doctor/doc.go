// SPDX-License-Identifier: Apache-2.0

// Package doctor says what is wrong with a host's placement, what it costs, why,
// and what to type.
//
//	Snapshot ──Examine──▶ Report{Verdict, Findings by cost}
//
// What time costs is computed in one place (lost.go); what the rules hold against
// their figures, and where that comes from, is in Config. A rule is one file, two
// where they share what they read (balancing, samples, guests).
//
// Every rule is a pure function of a snapshot. A finding has its evidence with it;
// a rule that lacks a figure it needs says so instead of guessing.
//
// Not for: reading anything (kernel), changing anything.
package doctor
