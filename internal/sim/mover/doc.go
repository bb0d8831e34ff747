// SPDX-License-Identifier: Apache-2.0

// Package mover computes how long moves of pages take in a simulated world, and what they
// cost. The mover is one thread in both kinds of world (sim, sim/threadworld):
//
//  1. It moves one page after the other and one move after the other, on the targets'
//     CPUs; where those have none, on any. Before the memory system is solved, a move plans
//     what it could do in its turn on an idle machine (Turn, Plan).
//  2. Copying is a load like others: lines are read from the old place of the page and
//     written to the new one. So other loads slow it down, and it slows them down (Load).
//  3. The pages that memory served are moved, and paid for (Served, Did, Take).
//  4. A call moves as many pages as fit into MaxStall, and they are unavailable during the
//     call; threads that access one of them stand still. All pages are accessed equally, so a
//     workload loses the share of a call's time that equals the share of its pages in the
//     call: in total, moving a whole workload costs it about one call (Stands).
//
// A step:
//
//	Turn ─▶ Plan ─▶ Take ─▶ Load ─▶ memsys ─▶ Served ─▶ Did ─▶ Stands ─▶ Look
//
// It is NOT for: which pages go where (sim/linux), or whose CPU time is taken (the worlds).
package mover
