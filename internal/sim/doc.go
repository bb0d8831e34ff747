// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated world: one machine, its Linux, and workloads with changing
// demand. It gives the same windows as a live kernel and takes the same steps, so a policy
// cannot tell the difference.
//
//	          ┌────────────────────── World ───────────────────────┐
//	Spec ───▶ │ demand ─▶ linux (what runs where, which pages)     │ ─▶ Window ─▶ policy
//	          │    ▲            │                                  │                │
//	          │    └─ requests ◀┴─▶ memsys (cycles per operation)  │ ◀─ Apply ◀─ actuate
//	          └────────────────────────────────────────────────────┘
//	                        └─▶ Truth: what workloads really got (latency, operations)
//
// A world has a population: which threads run where, and what they do in a step. The rest
// is the world's (see Population). In this package threads are amounts by node, all threads
// of a workload are alike, and a step may be a millisecond or a minute; sim/threadworld has
// single threads. A step of amounts:
//
//  1. Demand: the operations requested of each workload, by its load's curve, phase and
//     noise; growth of its memory and of its page cache.
//  2. Linux gives out CPU and moves threads (linux.Run), pages come and go
//     (linux.Touch, Reclaim, Balance).
//  3. The memory system's fixed point (memsys.Solve): cycles per operation with the
//     threads and pages where they are now.
//  4. Operations done, requests' latency, counters; pages moved, as many as memory served
//     (mover.go). Threads that wait for each other (WorkSpec.Barrier) have done as many as
//     the slowest of them.
//
// Tests hold what is exact: CPU time is operations × cycles / Hz; each request is done,
// dropped or waits; pages and threads are conserved. A demand is a function of time and
// seed alone: neither the step nor other workloads change it.
//
// It is deterministic: the seed and the start are arguments, and it uses no clock and no
// map order. The same seed gives the same bytes on machines of one architecture
// (sim/detmath). All its figures are modelled; docs/limits.md lists what it does not model.
//
// It is NOT for: deciding (policy), or for reading scenarios (sim/scenario).
package sim
