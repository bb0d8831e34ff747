// SPDX-License-Identifier: Apache-2.0

// Package threadreader reads windows of single threads: for some processes and cgroups,
// where each thread is, what it did, and where it may run. It is made for periods from
// 10 ms up, so the cost of a window matters.
//
//	each period, of each thread:
//	  perf group, one read ─▶ time on a CPU, cycles, instructions, A, W, DRAM reads
//	  task/TID/stat        ─▶ last CPU           (left out where it did not run)
//	  sched_getaffinity    ─▶ Allowed, Ours, Pinned
//	some times a second:
//	  task/, cgroup.threads ─▶ threads that came and went; CPUs that did
//
// Files stay open, and nothing is allocated for a thread that was there before. So a
// window is valid only until the next Read.
//
// Without counters the time on a CPU comes from schedstat, which lags by up to a tick
// for a running thread, and everything else is unknown, with the reason.
//
// It is NOT for: workloads' memory (kernel.Reader), what to move (policy), or moving
// (owner/affinity).
package threadreader
