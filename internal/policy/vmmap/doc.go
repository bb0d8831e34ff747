// SPDX-License-Identifier: Apache-2.0

// Package vmmap is Lakew et al.'s mapping of VMs on multi-level NUMA (arXiv
// 2501.01356) as a pure function: what a workload is (sheep, rabbit or devil, sensitive
// to remote memory or not) is inferred from windows; what arrives gets a slot that suits
// it; what runs worse than expected is moved, with as few moves as possible.
//
//	window ─▶ classes ─▶ stage 1: a slot, or a minimal reshuffle ──▶ Bind(nodes, CPUs)
//	                └──▶ stage 2: affected ─▶ fewest moves ─▶ pays? ─┘
//
// One Step:
//
//  1. Outcomes: what was refused, or drifted, has no place, and is left alone for a
//     while, longer each time.
//  2. Classes (infer.go, state.go). Counters say how long a program waits for hits in the
//     cache and for memory, what share hits, and with how much of the cache. From that
//     follows what it would lose beside a reference devil, do to a reference rabbit, and
//     lose with remote memory: the Slowdowns that define the classes (ClassOf; the animals
//     are Xie and Loh's, CMP-MSI 2008). What its counters do not tell is unknown, and is
//     taken for a sensitive rabbit. Requests an instruction tell when it behaves
//     differently: then all is learnt anew, what is expected of it, too.
//  3. The board: CPUs and memory that are free, and which are neighbours. A CPU is one VM's;
//     those of pinned workloads are theirs.
//  4. Stage 1, arrivals, the largest first: the suitable free slot that is nearest in
//     itself (slot.go); else one that the fewest VMs moved make, of these with the least
//     memory (reshuffle.go); else the least bad. Suitable: all neighbours in its caches
//     are compatible, and its nodes no farther apart than its size needs, or, if it is not
//     sensitive, than a server.
//  5. Stage 2, running: affected is what was worse than expected, (expected - measured) /
//     expected ≥ threshold, for some windows (of misses the sign flips). Expected is the
//     best that held for some windows, its own or of a replica that behaves alike. Where
//     threads spin, instructions say nothing, and it is not judged by them (spin.go). Bad
//     neighbours leave, or it does: whichever takes fewer moves, then less memory. Only
//     where the benefit matrix promises more than moving costs, one configuration at a
//     time; what was moved stays for a while, longer each time.
//
// A move within nodes is a Bind to other CPUs. To other nodes it is an Unbind, and a Bind
// once what it had is given back; its memory follows (actuate).
//
// Where the paper is silent, decision 0020 says what we chose. What distances mean
// (node, server, beyond) comes from the machine (machine.Levels). Nothing depends on the
// numbers of nodes but the very last tie.
//
// It is NOT for: acting, or moving memory, which follows the CPUs (actuate).
package vmmap
