// SPDX-License-Identifier: Apache-2.0

// Package control is the one loop: read a window, decide on it, turn the decisions into
// steps, take them, and report their outcomes in the next window.
//
//	World.Read ─▶ Window ─▶ Policy.Step ─▶ Actions ─▶ actuate ─▶ Steps ─▶ guard ─▶ Applier
//	     ▲                                               │                  │         │
//	     └───────────────────── Outcomes ◀───────────────┴──────────────────┴─────────┘
//
// The agent (agent), the thread agent (agent/threadagent), the screen (control/host) and the
// simulator (sim/runner) run it. They differ in their world, policy and applier, in when a
// round begins, and in what they report.
//
// It is pure: its users have the clocks and files. It is NOT for: choosing (policy), how
// a binding proceeds over many windows (actuate), or how a round is recorded.
package control
