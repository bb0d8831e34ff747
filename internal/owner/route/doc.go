// SPDX-License-Identifier: Apache-2.0

// Package route finds who acts for a workload: the manager of its cgroup, or for one
// that nobody manages, who writes cgroups. It is an owner behind the journal, too.
//
//	Step ──▶ whose is the workload? ─┬─ nobody's, or of direct_owners ─▶ owner/cgroup
//	                                 ├─ systemd's ─────────────────────▶ owner/systemd
//	                                 ├─ that of another manager who acts here ─▶ he
//	                                 └─ kubelet's, podman's, libvirt's ─▶ refused
//
// It is behind owner/threads and owner/resctrl, which hand on what is not theirs.
//
// A setting goes back to its owner by the kind of its name alone ("/demo/a cpuset.cpus",
// "unit a.service AllowedCPUs"): to restore, nothing has to be known of the workload.
//
// It is NOT for: finding out whose a cgroup is (kernel/cgroup), or acting.
package route
