// SPDX-License-Identifier: Apache-2.0

// Package resctrl reads, per workload, what its tasks move between caches and memory
// and what they hold of the last-level caches, through the kernel's resctrl file
// system (Intel RDT, AMD QoS; Documentation/filesystems/resctrl.rst).
//
//	info/L3_MON/num_rmids ─▶ budget ─▶ who has a group in this window
//	mon_groups/homenode-mon-…/tasks ◀─ threads of the workload's cgroup
//	mon_groups/…/mon_data/mon_L3_00/mbm_total_bytes ─▶ deltas ─▶ Workload.Traffic, LocalTraffic, LLC
//	who has none: DRAM loads × 64 B × a ratio learnt in windows with a group ─▶ estimated
//
// RMIDs are few, so groups go round (rotate.go). A group that somebody else made is
// never touched, and neither is a task that is in one.
//
// It is NOT for: limiting anything (owner/resctrl), mounting the file system.
package resctrl
