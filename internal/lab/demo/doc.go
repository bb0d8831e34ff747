// SPDX-License-Identifier: Apache-2.0

// Package demo runs one mix of load programs in the lab under several ways to
// place them, and gathers what the counters say.
//
//	host: Compare ── for each (arm, repeat) ──▶ guest: RunArm
//	        │                                     │ cgroups, load, mover,
//	        ▼                                     │ warm-up, measurement
//	  trial.Comparison ◀── results, as a file ────┘
//
// All arms get the same load, seeds, limits and length of warm-up, and leave the same
// CPU free for daemons. Not for: deciding who wins (trial) or showing it (report).
package demo
