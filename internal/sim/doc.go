// SPDX-License-Identifier: Apache-2.0

// Package sim is a simulated world: one machine, its Linux, and workloads whose
// demand comes and goes. It gives the same windows as a live kernel and takes the
// same steps, so that a policy cannot tell.
//
//	          ┌────────────────────── World ───────────────────────┐
//	Spec ───▶ │ demand ─▶ linux (who runs where, which pages)      │ ─▶ Window ─▶ policy
//	          │    ▲            │                                  │                │
//	          │    └─ requests ◀┴─▶ memsys (cycles per operation)  │ ◀─ Apply ◀─ actuate
//	          └────────────────────────────────────────────────────┘
//	                        └─▶ Truth: what workloads really got (latency, operations)
//
// A step of time:
//
//  1. Demand: each workload's operations asked for, by its load's curve, phase and
//     noise; growth of its memory and of its page cache.
//  2. Linux gives out CPU and moves threads (linux.Run), pages come and go
//     (linux.Touch, Reclaim, Balance).
//  3. The memory system's fixed point (memsys.Solve): cycles per operation where
//     the threads and pages are now.
//  4. Operations done, requests' latency, counters; pages moved, as many as memory
//     served (sim/mover). Threads that wait for each other (WorkSpec.Barrier) have done
//     as many as the slowest of them.
//
// What is exact here, and tests hold it: CPU time is operations × cycles / Hz; what is
// asked for is done, dropped or waits; pages and threads are conserved. A demand is a
// function of time and seed alone: neither the step nor other workloads change it.
//
// It is deterministic: the seed and the start are arguments, there is no clock and
// no order of a map in it, and its arithmetic is sim/exact's. Everything that it
// says is modelled, and what it does not model is in docs/limits.md.
//
// It is NOT for: deciding (policy), or for reading scenarios (sim/scenario).
package sim
