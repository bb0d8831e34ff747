// SPDX-License-Identifier: Apache-2.0

// Package mover is how long moves of pages take in a simulated world, and what they
// cost. It is one thread, that both kinds of world (sim, sim/threadworld) have:
//
//  1. It moves one page after the other and one move after the other, on the targets'
//     CPUs, or where those have none, on any. Before the memory system is solved, a move
//     plans what it could do in its turn on an idle machine (Turn, Plan).
//  2. Copying is a load like others: lines are read where the page was and written where
//     it goes. So others slow it down, and it them (Load).
//  3. What it was served is moved, and paid for (Served, Did, Take).
//  4. A call moves as many pages as fit into MaxStall, and they are out of reach for as
//     long as it takes; threads that access one of them stand still. Accesses go to all
//     pages alike, so of a call's time a workload loses what share of its pages is in it:
//     in all, moving a whole workload costs it about one call (Stands).
//
// A step:
//
//	Turn ─▶ Plan ─▶ Take ─▶ Load ─▶ memsys ─▶ Served ─▶ Did ─▶ Stands ─▶ Look
//
// Not for: which pages go where (sim/linux), or whose time is taken (the worlds).
package mover
