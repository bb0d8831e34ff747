// SPDX-License-Identifier: Apache-2.0

// Package profiling measures one workload in its important placements, and places it by a
// model (Funston et al., USENIX ATC 2018, §5).
//
//	Job ─▶ order of runs ─▶ Subject.Measure in each ─▶ State, saved after each ─▶ Rows, Report
//	goal, model ─▶ two probes ─▶ Decide ─┬─▶ Settle ─▶ measured again ─▶ stays, or back
//	                                     └─▶ third probe, where an interval straddles the target
//	trials of a service's replicas ─▶ Deployment ─▶ kept, which the agent takes for approved, or rolled back
//
// The subject, the clock and the place of the state are the caller's (profiling/host), so
// every decision is tested with fakes.
//
// It is NOT for: which placements matter (placement), fitting or evaluating a model (python,
// model), or acting on a host.
package profiling
