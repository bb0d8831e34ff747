// SPDX-License-Identifier: Apache-2.0

// Package bpfcount counts hardware events per cgroup at context switches: one
// group of events on each CPU, whatever the number of cgroups, and a BPF program
// that credits what they counted to the cgroup that leaves the CPU.
//
//	sched_switch ─▶ program ─reads─▶ CPU's events      slots:  cgroup id ─▶ slot
//	                   └──────adds──▶ ledger[slot × CPU] ◀─mapped─ Counter.Read
//	test run on each CPU ─▶ the same program: what runs now is credited, too
//
// A group in kernel/perf goes on and off the PMU whenever a CPU switches from one cgroup
// to another, and takes cgroups × CPUs × events descriptors. These events stay on, and
// take CPUs × events. Both count the same (docs/decisions/0027).
//
// A cgroup's id is the inode number of its directory (kernfs_node.id, Linux 5.5). What
// its descendants do counts only if Add was given their ids.
//
// It is NOT for: choosing what is counted, or kernels without BTF (before 5.5, or
// CONFIG_DEBUG_INFO_BTF off): New returns ErrNotSupported.
package bpfcount
