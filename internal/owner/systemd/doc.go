// SPDX-License-Identifier: Apache-2.0

// Package systemd binds units by asking systemd: over D-Bus, at run time only, so that
// nothing survives a reboot. It is an owner behind the journal: it cannot ask without a
// permit.
//
//	Step{set-cpus, /system.slice/a.service, 2-3}
//	      ──Plan──▶ unit a.service AllowedCPUs = 2-3
//	journal ──Write(permit)──▶ SetUnitProperties("a.service", runtime, AllowedCPUs = 0x0c) ──▶ PID 1
//	                                 └─▶ the unit's cgroup, cpuset.cpus = 2-3
//
// PID 1 does the write, and waits for the pages that a narrower AllowedMemoryNodes moves.
// So pages go first (actuate's order). While more than a little memory is elsewhere, the
// nodes are refused here: the unit keeps its CPUs.
//
// Only a workload that is a whole unit is acted upon. The unit itself manages the cgroups
// below it (Delegate=), and units of a user's manager belong to that user. systemd has
// these properties on cgroup v2 only.
//
// It is NOT for: finding the owner of a cgroup (kernel/cgroup), or moving pages.
package systemd
