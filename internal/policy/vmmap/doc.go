// SPDX-License-Identifier: Apache-2.0

// Package vmmap is Lakew et al.'s mapping of VMs on multi-level NUMA (arXiv 2501.01356) as
// a pure function. It infers from windows what a workload is: sheep, rabbit or devil,
// sensitive to remote memory or not. An arriving VM gets a slot that suits it. A VM that
// runs worse than expected is moved, with as few moves as possible.
//
//	window ─▶ classes ─▶ stage 1: a slot, or a minimal reshuffle ──▶ Bind(nodes, CPUs)
//	                └──▶ stage 2: affected ─▶ fewest moves ─▶ pays? ─┘
//
// One Step:
//
//  1. Outcomes: a VM whose action was refused, or whose setting drifted, has no place and
//     is left alone for a while, longer each time.
//  2. Classes (infer.go, state.go). Counters say how long a program waits for hits in the
//     cache and for memory, what share hits, and with how much of the cache. From these
//     follow its slowdown beside a reference devil, the slowdown that it causes to a
//     reference rabbit, and its slowdown with remote memory: the Slowdowns that define the
//     classes (ClassOf; the animals are Xie and Loh's, CMP-MSI 2008). A workload whose
//     counters do not show a class is treated as a sensitive rabbit. Requests per instruction
//     show a change of behaviour: then all is learnt anew, including what is expected of it.
//  3. The board: free CPUs and memory, and which VMs are neighbours. A CPU belongs to one
//     VM; pinned workloads keep theirs.
//  4. Stage 1, arrivals, the largest first. A VM gets the suitable free slot with the
//     nearest nodes (slot.go); else a slot that the fewest moves of VMs free, among these
//     with the least memory (reshuffle.go); else the least bad slot. A slot is suitable if
//     all neighbours in its caches are compatible, and its nodes are no farther apart than
//     the VM's size needs; for an insensitive VM, no farther than a server.
//  5. Stage 2, running VMs. A VM is affected if it was worse than expected, (expected -
//     measured) / expected ≥ threshold, for some windows (for misses the sign flips).
//     Expected is the best that held for some windows, its own or a replica's that behaves
//     alike. Where threads spin, instructions say nothing, and the VM is not judged by them
//     (spin.go). Either its bad neighbours leave, or it does: whichever takes fewer moves,
//     then less memory. This happens only where the benefit matrix promises more than moving
//     costs, one configuration at a time. A moved VM stays for a while, longer each time.
//
// A move within nodes is a Bind to other CPUs. A move to other nodes is an Unbind, then a
// Bind once the old binding is given back. Its memory follows (actuate).
//
// Where the paper is silent, decision 0020 says what we chose. The meaning of distances
// (node, server, beyond) comes from the machine (machine.Levels). Only the very last tie
// depends on the numbers of nodes.
//
// It is NOT for: acting, or moving memory, which follows the CPUs (actuate).
package vmmap
