// SPDX-License-Identifier: Apache-2.0

// Package memsys is the memory system of the simulated machine. From what runs where and
// where its memory is, it computes how many cycles an operation takes, and the traffic that
// this makes.
//
//	Load{workload, domain, CPUs, work, homes} ─┐
//	Load …                                     ├─▶ Solve ─▶ Result{cycles/op, ops/s, loads by node, …}
//	System{latencies, controllers, links, LLCs}┘            Node{utilisation}, Link{utilisation}
//
// Contention is a fixed point: cycles per operation decide the traffic, traffic
// decides queues and shares of caches, and these decide cycles per operation.
//
//  1. Private L2: the part of a region that fits a core's L2 hits there.
//  2. The LLC of a domain is shared by occupancy: a load that brings in more lines holds
//     more of it, and a region's miss ratio follows from what it holds.
//  3. A miss goes to the node of its memory: the idle latency of the pair of nodes, plus
//     the waits at the controller and on every link of the way, by their load.
//  4. Nothing serves more than its capacity: latency limits the CPUs.
//  5. Lines that several threads modify come from the core that had them last.
//  6. CPUs that share a core share its issue slots.
//
// All of this is solved at once, by Newton's method (solve.go). Starting from the last
// steady state it takes a few rounds, as one minute is like the one before.
//
// Figures: cycles are the core's; bandwidths are lines of 64 bytes per cycle; times are
// seconds of the machine. All results are modelled.
//
// It is NOT for: what runs where (sim/linux), or the passing of time (sim): a Solve is one
// steady state.
package memsys
