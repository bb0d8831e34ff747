// SPDX-License-Identifier: Apache-2.0

// Package threadworld is a simulated world whose population is single threads
// (sim.Population): it does thread by thread what package sim does with amounts. Each
// thread is on one CPU, and has private memory and counters of its own. So a policy can
// move it, and chance can strand it.
//
//	sim.World: demand ─▶ scheduler (which CPU, whose turn) ─▶ memsys (cycles per operation)
//	                         ▲                                   │
//	        Apply (cpuset, pin, move) ◀─ policy ◀─ Window ◀──────┘
//
//	domains   groups of CPUs that balance   sched_init_numa, sd_init
//	starts    where threads begin           select_task_rq_fair, find_idlest_group
//	wakes     where they wake up            select_idle_sibling, wake_affine
//	balances  CPUs even out                 newidle_balance, load_balance
//	looks     and LLCs and nodes            calculate_imbalance, detach_tasks
//	swaps     and threads change places     (noise of a busy machine)
//	cold      and bring what their LLC had
//	numa      pages and threads meet        task_numa_work, task_numa_migrate
//	shares    a CPU's time, barriers, quotas, queues
//	loads     threads that are alike are one load of the memory system
//	pages     linux.Host's rows, and each thread's part of them
//
// The rest is sim.World's: specs, demand, steps, moves, windows, truths. Use it where
// single threads matter (vCPUs, barriers, run-time variation); amounts are far cheaper for
// many servers and long days. Decisions, estimates and what is not modelled:
// docs/decisions/0021-threads-world.md.
//
// It is NOT for: deciding (policy), or for fleets (sim/fleet).
package threadworld
