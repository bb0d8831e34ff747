// SPDX-License-Identifier: Apache-2.0

// Package runner is what acts in a simulated world: policies by name, and the loop that
// runs one of them.
//
//	world ──Window──▶ Policy.Step ──Actions──▶ actuate.Step ─steps──▶ world.Apply
//	  ▲                                             │                      │
//	  └────────────── outcomes in the next window ◀─┴──────────────────────┘
//
// The loop is the agent's (control.Loop): a policy cannot tell whether the world is
// simulated. Some arms are no policy but a way to start: NUMA balancing is a setting of
// Linux, interleaving a memory policy of the workloads (Prepare).
//
// It is NOT for: deciding (policy), scenarios and figures (sim/scenario), or many
// machines (sim/fleet).
package runner
