// SPDX-License-Identifier: Apache-2.0

// Package cgroup acts on cgroups without a manager, by writing their cpuset files. It is
// an owner behind the journal: it cannot write without a permit.
//
//	Step{set-cpus, /demo/a, 2-3} ──Plan──▶ /demo cgroup.subtree_control = +cpuset  (v2, if off)
//	                                       /demo/a cpuset.cpus = 2-3
//	journal ──Read, Write(permit)──▶ the files
//
// On v1 a cpuset's memory_migrate decides whether writing mems moves pages. homenode
// leaves it as it is. By the time mems is written, few pages are left to move, so the
// write is short either way, and there is one setting less to put back.
//
// It is NOT for: cgroups of systemd, kubelet, Docker, containerd or libvirt.
// Those are refused, unless the configuration names the owner as one whose
// cgroups may be written directly.
package cgroup
