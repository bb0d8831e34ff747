// SPDX-License-Identifier: Apache-2.0

// Package migration says what moving a workload's memory is about: which kinds of
// pages there are, how many are where, what became of them, what it costs, and
// whether it pays.
//
//	kernel/migrate ── Census before ─▶ Estimate ─▶ (moved) ─▶ Census after ─▶ Report
//	window: remote loads ─▶ Pays: what it saves over the horizon against what it costs
//
// It is NOT for: finding or moving pages (kernel/migrate), or when to do so
// (actuate).
package migration
