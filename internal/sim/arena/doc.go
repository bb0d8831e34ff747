// SPDX-License-Identifier: Apache-2.0

// Package arena compares policies on the same machines with the same loads: every policy ×
// machine × mix × seed, in worlds of single threads (sim/threadworld).
//
//	Plan{machines, mixes, policies, seeds} ─Run─▶ Result{cells} ─▶ Summary: ranking, intervals
//	                                                        └───▶ Row: a paper's figure beside ours
//
// It is NOT for: what a paper did (papers/rao, papers/lakew), or showing it (report).
package arena
