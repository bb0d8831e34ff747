// SPDX-License-Identifier: Apache-2.0

// Package threads is a simulated world of single threads: what package sim does with
// amounts, it does one by one. Each thread is on one CPU, has private memory of its own
// and counters of its own, so that a policy can move it and chance can strand it.
//
//	Spec ─▶ demand ─▶ scheduler (which CPU, whose turn) ─▶ memsys (cycles per operation)
//	                      ▲                                   │
//	     Apply (cpuset, pin, move) ◀─ policy ◀─ Window ◀──────┘
//
//	domains   CPUs that look after others   sched_init_numa, sd_init
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
// It takes sim's specs and gives sim's truths; policies and actuate cannot tell it from
// sim or from Linux. Use it where single threads matter (vCPUs, barriers, run-time
// variation); package sim is cheaper by far for many servers and long days. Decisions,
// estimates and what is not in it: docs/decisions/0021-threads-world.md.
//
// It is NOT for: deciding (policy), or for fleets (sim/fleet).
package threads
