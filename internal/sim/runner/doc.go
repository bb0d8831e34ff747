// SPDX-License-Identifier: Apache-2.0

// Package runner is what acts in a simulated world, and what runs many worlds: policies by
// name, the loop that runs one of them, and the harness of experiments.
//
//	world ──Window──▶ Policy.Step ──Actions──▶ actuate.Step ─steps──▶ world.Apply
//	  ▲                                             │                      │
//	  └────────────── outcomes in the next window ◀─┴──────────────────────┘
//
// The loop is the agent's (control.Loop): a policy cannot tell whether the world is
// simulated. Some arms are no policy but a way to start: NUMA balancing is a setting of
// Linux, interleaving a memory policy of the workloads (Prepare).
//
//	Plan: cells ─Run─▶ several at a time ─▶ Take, in the order of cells ─▶ result
//	        cell: world ─Truth─▶ Tally ─▶ figures ─▶ Check
//
// The three kinds of experiment (sim/scenario, sim/arena, sim/fleet) each have a plan and a
// way to read results; this is what they have in common. A result does not depend on the
// number of workers: each cell has a world of its own, and outcomes are taken in the order
// of cells, whichever finishes first.
//
// It is NOT for: deciding (policy), what a cell is or what its figures mean (sim/scenario,
// sim/arena, sim/fleet), or statistics over seeds (experiment).
package runner
