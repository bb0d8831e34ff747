// SPDX-License-Identifier: Apache-2.0

// Package brm is Bias Random vCPU Migration (Rao, Wang, Zhou, Xu: Optimizing Virtual
// Machine Scheduling in NUMA Multicore Systems, HPCA 2013; we have the slides) as a pure
// function: threads find the node on which the machine wastes the least, by chance and
// by bias.
//
//	window ─▶ penalty of each thread, W/A ─▶ sum by scope ─▶ unc[node it is on]
//	                                                              │
//	      Pin ◀─ r < prob: a CPU of the bias node ◀─ bias, prob ◀─┘
//	       ▲
//	       └─ explore: the nearest node that it does not know
//
// A step is one period, 10 ms or longer. For each thread of a candidate:
//
//  1. What is remembered of it is found again: {node, bias node, prob, unc[node]}, by its
//     workload and ID. What is gone is forgotten.
//  2. Its uncore penalty is W/A: cycles with a critical request outstanding, for each
//     request that left the private caches. With fewer than MinRequests in the period
//     there is no new figure, and the last one stays: unknown is not zero.
//  3. The penalties are added up: over the system (paper), its workload, or not at all
//     (Scope). What is older than Stale is in no sum. A mean stands for the sum, so that
//     threads may come and go.
//  4. unc[its node] = that value (paper), smoothed. Periods that do not count: the one in
//     which it came, and the Settle after. What it remembers of other nodes fades towards
//     what it is like here, with HalfLife; after Forget without a visit, or when it is
//     much worse than it ever was for ChangePeriods, they are unknown again.
//  5. If unc[its node] > least unc × (1 + Margin), and with its own penalties half of
//     MinGain of its cycles or more would be saved: prob += Rise, bias = the least. Else
//     prob −= Fall, bias = its node. 0 ≤ prob ≤ 100. (paper: Margin and MinGain 0, Rise
//     and Fall 1)
//  6. Candidates are those with the tag numa_sensitive (paper: vCPUs whose guest's
//     affinity is restricted); those without any tag are inferred (infer.go; the paper's
//     future work). What hardly waits for memory (MinStall) stays where it is.
//  7. r is drawn from 0 … 99; if r < prob it goes to the bias node, and prob is reset
//     (paper). Not before its visit has Samples that count.
//  8. Where its node is the best that it knows, it goes to see the nearest one that it
//     does not know, by a chance of ExploreChance a period; not all at once (Explorers).
//     The paper's text is silent here: penalties that begin at zero would make a node
//     that was never visited the best for ever. A node that was seen in vain is forgotten
//     after twice as long each time, so that looks grow rare.
//  9. On the node it gets the CPU that the window's threads use least, within its own
//     affinity and its workload's; one that is idle if there is one. Where there is none
//     it goes as WhenFull says: a busier CPU may cost what the node gains. It is put there
//     and let go (Pin with Release): the kernel balances as it likes, and what it takes
//     away is left alone (paper). With Hold it stays tied to the node, as long as that has
//     a CPU for each thread on it.
//
// A thread that another process pinned, whose CPU is unknown, or that was refused just now
// is never moved. Every workload has one reason in each step.
//
// What is drawn depends on the state's seed, the step and the thread: the same state and
// window give the same answer, and neither other threads nor the numbers of nodes
// change it. Threads learn one by one: nothing is locked, nothing is shared but sums, and
// a step costs the same for each thread, however many there are.
//
// It is NOT for: acting (actuate, owner), choosing where memory goes, short-lived jobs
// (it takes a second to learn), or knowing what a guest's own topology is.
package brm
