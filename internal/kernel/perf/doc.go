// SPDX-License-Identifier: Apache-2.0

// Package perf counts hardware events per cgroup: one group of events on each
// CPU, opened once, read every round, scaled by deltas only.
//
//	cgroup dir ──Open──▶ Group{CPU × event} ──Read──▶ Sample (deltas)
//	                        table: internal/event, by the CPU
//
// Two quirks of the kernel shape it:
//
//   - The first time_enabled of a cgroup event is garbage, up to the uptime. So the
//     first sample is only a base, and a later delta longer than the period is ignored.
//   - A group that does not fit the PMU runs part of the time: its deltas are scaled
//     by enabled / running, and the result is marked.
//
// A probe's own threads are counted one by one (thread.go), by tables of their own.
//
// It is NOT for: sampling, uncore PMUs, or naming more events than a window
// has fields for.
package perf
