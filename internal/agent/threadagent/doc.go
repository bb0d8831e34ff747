// SPDX-License-Identifier: Apache-2.0

// Package threadagent runs the loop (control) for single threads: it observes them every
// period, has a policy decide, moves them through the journal, and sums up at the end.
//
//	every period, from 10 ms up:
//	  kernel.ThreadReader ─▶ Window ─▶ a policy ─▶ Pins ─▶ actuate ─▶ Steps
//	        ▲                                                      │
//	        └── outcomes ◀── journal.Applier ─▶ owner/affinity ◀────┘
//	  if threads were moved or new ones are pinned: restore the threads that inherited
//
// It starts by restoring what a killed homenode left, and ends by restoring what it
// still holds itself.
//
// It is NOT for: cgroups (agent), or choosing (policy/brm).
package threadagent
