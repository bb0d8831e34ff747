// SPDX-License-Identifier: Apache-2.0

// Package migration holds what is known about moving a workload's memory: the kinds of
// pages, how many are where, what happened to them, what the move costs, and whether it
// pays.
//
//	kernel/migrate ── Census before ─▶ Estimate ─▶ (moved) ─▶ Census after ─▶ Report
//	window: remote loads ─▶ Pays: what it saves over the horizon against what it costs
//
// It is NOT for: finding or moving pages (kernel/migrate), or when to do so
// (actuate).
package migration
