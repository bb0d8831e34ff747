// SPDX-License-Identifier: Apache-2.0

// Package agent runs the loop (control) on a host, and reports what was done and why.
//
//	every period:
//	  kernel.Reader ─▶ Window ─▶ policy/mao ─▶ Actions ─▶ actuate ─▶ Steps
//	        ▲                                                          │
//	        └── outcomes ◀── journal.Applier ─▶ owner/cgroup ◀─────────┘
//	                              │
//	        status.json, for 'homenode status' and 'homenode why'
//
// It starts by restoring what a killed agent left, and ends by restoring what it set
// itself. Not for: deciding (policy), what becomes of a step (control), or knowing Linux
// (kernel).
package agent
