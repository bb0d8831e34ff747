// SPDX-License-Identifier: Apache-2.0

// Package resctrl reads, for each workload, what its tasks move between caches and memory
// and what they hold in the last-level caches, through the kernel's resctrl file system
// (Intel RDT, AMD QoS; Documentation/filesystems/resctrl.rst).
//
//	info/L3_MON/num_rmids ─▶ budget ─▶ workloads with a group in this window
//	mon_groups/homenode-mon-…/tasks ◀─ threads of the workload's cgroup
//	mon_groups/…/mon_data/mon_L3_00/mbm_total_bytes ─▶ deltas ─▶ Workload.Traffic, LocalTraffic, LLC
//	without a group: DRAM loads × 64 B × a ratio learnt in windows with one ─▶ estimated
//
// RMIDs are few, so workloads take turns with groups (rotate.go). Groups made by other
// processes, and the tasks in them, are never touched.
//
// It is NOT for: limiting anything (owner/resctrl), mounting the file system.
package resctrl
