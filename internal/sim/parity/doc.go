// SPDX-License-Identifier: Apache-2.0

// Package parity compares the simulated machine with the lab: the same loads, placed the
// same way, measured there and computed here.
//
//	Scenarios ──▶ lab (make bench-sim-parity) ──▶ testdata/lab.json ─┐
//	    │                                                            ├─▶ TestParity
//	    └─SpecOf─▶ sim.Spec ──▶ sim.World ──▶ cycles/op, local ratio ┘
//	                  ▲
//	                 Fit: what a load's source does not tell, fitted on four scenarios
//
// Each scenario was chosen before it was simulated. Four scenarios, one of each kind, are
// fitted. All others are judged: local access ratio, cycles per operation, and which
// placement is better. A load's command line becomes a sim.Spec by one rule per kind,
// without figures for single scenarios.
//
// Only tests use it: its own, and the measurements in internal/lab, which share scenarios
// and the form of the record.
//
// It is NOT for: measuring (internal/lab), or for what the simulated machine does (sim).
package parity
