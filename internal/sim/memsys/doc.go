// SPDX-License-Identifier: Apache-2.0

// Package memsys is the memory system of the simulated machine: given what runs
// where and where its memory is, how many cycles an operation takes, and what
// traffic that makes.
//
//	Load{workload, domain, CPUs, work, homes} ─┐
//	Load …                                     ├─▶ Solve ─▶ Result{cycles/op, ops/s, loads by node, …}
//	System{latencies, controllers, links, LLCs}┘            Node{utilisation}, Link{utilisation}
//
// Contention is a fixed point: cycles per operation decide the traffic, traffic
// decides queues and shares of caches, and these decide cycles per operation.
//
//  1. Private L2: what of a region fits a core's L2 hits there.
//  2. The LLC of a domain is shared by occupancy: a load that brings in more lines
//     holds more of it; a region's miss ratio is that of what it holds.
//  3. A miss goes to the node where its memory is: idle latency of the pair, plus
//     what it waits at the controller and on every link of its way, by their load.
//  4. Nothing serves more than its capacity: latency is what holds CPUs back.
//  5. Lines that several threads modify come from the core that had them last.
//  6. CPUs that share a core share its issue slots.
//
// All of that is solved at once, by Newton's method (solve.go); a few rounds from the
// last state of affairs, as one minute is like the one before.
//
// Figures: cycles are the core's; bandwidths are lines of 64 bytes per cycle;
// times are seconds of the machine. Everything that comes out is modelled.
//
// It is NOT for: who runs where (sim/linux), or time passing (sim): a Solve is one
// state of affairs.
package memsys
