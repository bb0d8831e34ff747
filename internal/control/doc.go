// SPDX-License-Identifier: Apache-2.0

// Package control is the one loop: read a window, decide on it, cut what was decided into
// steps, take them, and report in the next window what became of them.
//
//	World.Read ─▶ Window ─▶ Policy.Step ─▶ Actions ─▶ actuate ─▶ Steps ─▶ guard ─▶ Applier
//	     ▲                                               │                  │         │
//	     └───────────────────── Outcomes ◀───────────────┴──────────────────┴─────────┘
//
// The agent (agent), the thread agent (agent/threadagent), the screen (control/host) and the
// simulator (sim/runner) run it. They differ in their world, policy and applier, in when a
// round begins, and in what they report.
//
// It is pure: clocks and files are those of its users. It is NOT for: choosing (policy),
// how a binding goes on over many windows (actuate), or what a round is recorded as.
package control
