// SPDX-License-Identifier: Apache-2.0

// Package agent is the loop on a host: observe a window, decide purely, act
// through the journal, tell what was done and why.
//
//	every period:
//	  kernel.Reader ─▶ Window ─▶ policy/mao ─▶ Actions ─▶ actuate ─▶ Steps
//	        ▲                                                          │
//	        └── outcomes ◀── journal.Applier ─▶ owner/cgroup ◀─────────┘
//	                              │
//	        status.json, for `homenode status` and `why`
//
// It starts by putting back what a killed agent left, and ends by putting back
// what it set itself. Not for: deciding (policy) or knowing Linux (kernel).
package agent
