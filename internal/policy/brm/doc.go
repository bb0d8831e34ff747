// SPDX-License-Identifier: Apache-2.0

// Package brm is Bias Random vCPU Migration (Rao, Wang, Zhou, Xu: Optimizing Virtual
// Machine Scheduling in NUMA Multicore Systems, HPCA 2013; we have the slides) as a pure
// function: threads find the node on which the machine wastes the least time, by biased
// random moves.
//
//	window ─▶ penalty of each thread, W/A ─▶ sum by scope ─▶ unc[node it is on]
//	                                                              │
//	      Pin ◀─ r < prob: a CPU of the bias node ◀─ bias, prob ◀─┘
//	       ▲
//	       └─ explore: the nearest node that it does not know
//
// A step is one period, 10 ms or longer. For each thread of a candidate:
//
//  1. Its memory from earlier steps is looked up by workload and ID: {node, bias node,
//     prob, unc[node]}. Threads that are gone are forgotten.
//  2. Its uncore penalty is W/A: cycles with a critical request outstanding, for each
//     request that left the private caches. With fewer than MinRequests in the period there
//     is no new figure, and the last one stays: unknown is not zero.
//  3. The penalties are added up: over the system (paper), over its workload, or not at
//     all (Scope). Figures older than Stale are in no sum. A mean stands for the sum, so that
//     threads may come and go.
//  4. unc[its node] = that value (paper), smoothed. The period of its arrival and the
//     Settle periods after it do not count. Its figures of other nodes fade towards the
//     figure here, with HalfLife. They are unknown again after Forget without a visit, or
//     when it has been much worse than ever before for ChangePeriods.
//  5. If unc[its node] > least unc × (1 + Margin), and the move would save half of MinGain
//     of its cycles or more by its own penalties: prob += Rise, bias = the node of the least.
//     Else prob −= Fall, bias = its node. 0 ≤ prob ≤ 100. (paper: Margin and MinGain 0, Rise
//     and Fall 1)
//  6. Candidates are the workloads tagged numa_sensitive (paper: vCPUs whose guest's
//     affinity is restricted). Untagged workloads are inferred (infer.go; the paper's future
//     work). A thread that hardly waits for memory (MinStall) stays where it is.
//  7. r is drawn from 0 … 99. If r < prob, the thread goes to the bias node, and prob is
//     reset (paper), but not before its visit has Samples that count.
//  8. Where its node is the best that it knows, it explores the nearest node that it does
//     not know, with a chance of ExploreChance per period, but not all threads at once
//     (Explorers). The paper's text is silent here: penalties that begin at zero would make a
//     node that was never visited the best for ever. After a visit in vain it takes twice as
//     long until a node is forgotten, so visits become rare.
//  9. On the node it gets the CPU that the window's threads use least, within its own
//     affinity and its workload's; an idle CPU if there is one. Where there is none, WhenFull
//     decides: a busier CPU may cost what the node gains. The thread is put there and
//     released (Pin with Release): the kernel balances as it likes, and a thread that it
//     takes away is left alone (paper). With Hold it stays tied to the node, as long as the
//     node has a CPU for each thread on it.
//
// A thread is never moved if another process pinned it, its CPU is unknown, or a move of it
// was just refused. Every workload has one reason in each step.
//
// Draws depend on the state's seed, the step and the thread. The same state and window give
// the same answer, and neither other threads nor the numbers of nodes change it. Threads
// learn one by one: nothing is locked, only sums are shared, and a step costs the same for
// each thread, however many there are.
//
// It is NOT for: acting (actuate, owner), choosing where memory goes, short-lived jobs
// (it takes a second to learn), or knowing what a guest's own topology is.
package brm
