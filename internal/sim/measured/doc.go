// SPDX-License-Identifier: Apache-2.0

// Package measured holds the simulated machine to what others measured on real ones
// (../shared/facts/measured.md): saturation of a node, links under load, loaded latency.
//
//	facts ──▶ rows (measured, with a profile, without) ──▶ table with errors ──▶ limits
//
// A row is judged if nothing in the model was set by it, and fitted otherwise: both are
// shown, and only judged rows are held to the limits (15 % with a profile, 35 % without).
// 'go test ./internal/sim/measured -run TestMeasured -v' prints the table, and
// scripts/check-measured shows it.
//
// It is NOT for: classes and placements (other rooms hold these), or the lab (sim/parity).
package measured
