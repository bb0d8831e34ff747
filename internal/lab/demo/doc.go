// SPDX-License-Identifier: Apache-2.0

// Package demo runs one mix of load programs in the lab under several
// placements, and combines the counters.
//
//	host: Compare ── for each (arm, repeat) ──▶ guest: RunArm
//	        │                                     │ cgroups, load, mover,
//	        ▼                                     │ warm-up, measurement
//	  trial.Comparison ◀── results, as a file ────┘
//
// All arms have the same load, seeds, limits and length of warm-up, and keep the same
// CPU free for daemons. Not for: deciding which arm wins (trial) or showing it
// (report).
package demo
