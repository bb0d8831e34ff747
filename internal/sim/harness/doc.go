// SPDX-License-Identifier: Apache-2.0

// Package harness runs the cells of a plan and adds up what workloads got in them. The
// three kinds of experiment (sim/scenario, sim/arena, sim/fleet) each have a plan and a way
// to read results; this package is what they have in common.
//
//	Plan: cells ─Run─▶ several at a time ─▶ Take, in the order of cells ─▶ result
//	        cell: world ─Truth─▶ Tally ─▶ figures ─▶ Check
//
// A result does not depend on the number of workers: each cell has a world of its own, and
// outcomes are taken in the order of cells, whichever finishes first.
//
// It is NOT for: what a cell is, or statistics over seeds (trial).
package harness
