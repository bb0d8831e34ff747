// SPDX-License-Identifier: Apache-2.0

// Package linux is what an operating system does by itself in the simulated machine: it is
// part of the world, not a policy. Each behaviour can be switched off, and names the kernel
// function that it follows.
//
//	runs      how much CPU each gets, where     sched/fair.c: quotas, fair shares
//	drift     threads move between nodes        select_task_rq_fair, load_balance
//	touches   where new pages come from         alloc_pages_mpol, get_page_from_freelist
//	reclaims  page cache that makes room        kswapd, balance_pgdat
//	balances  NUMA balancing                    task_numa_work, do_numa_page
//	settings  cpuset writes, page moves         cpuset_migrate_mm, move_pages
//
//	Host{Settings, nodes, groups} ──Run(dt, wants)──▶ CPU by group and node
//	                              ──Touch, Balance──▶ pages moved, faults, CPU spent
//
// Threads and pages are amounts, not individuals: On[n] threads of a group are on node n
// (2.3 of them, if need be), and likewise pages. So a step may be a millisecond or a
// minute, and nothing depends on the order of nodes.
//
// A step is Run, then Touch, Release and Reclaim, then Balance of each group for the same
// time. Between Runs the host keeps track of what is free; the next Run notices changes of
// Memory by the caller. Page cache that Touch drops is removed from the lists of other
// groups with the next call of another method.
//
// Figures are the kernel's defaults (6.1) where it has them. The code marks as estimated:
// how fast load_balance is between nodes (balanceSeconds, swapRate), how often a wake-up
// changes the node (wakeCross), what kswapd gives back per second (kswapdRate,
// mappedWeight), what a hint fault costs (faultSeconds, scanSeconds), how many threads
// follow their memory (taskMove). Not modelled: priorities (threads of a group are all
// alike), groups below groups, which of a node's CPUs a cpuset has, swap, huge pages,
// memory tiers, zones, and the first passes of NUMA balancing, which move pages at their
// first fault.
//
// It is NOT for: the cost of an access (sim/memsys), or what workloads request (sim).
package linux
