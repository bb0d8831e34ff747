// SPDX-License-Identifier: Apache-2.0

// Package cgroup finds the cgroup hierarchies of a host, v1, v2 or both, lists
// the cgroups that are workloads, and parses their files.
//
//	/proc/self/mountinfo ──Find──▶ Layout ──Discover──▶ /demo/a (none), /x.service (systemd)
//	                                  └─ which hierarchy has cpuset, cpu, memory, perf_event
//
// A workload is named by its path below the hierarchy that has cpuset, because it will
// be bound there. In the other hierarchies the same path is looked up, and used only if
// the workload's processes are there too.
//
// It is NOT for: writing anything (owner/cgroup), deltas (kernel).
package cgroup
