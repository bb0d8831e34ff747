// SPDX-License-Identifier: Apache-2.0

// Package dispatch finds the owner that acts for a workload: the manager of its cgroup or,
// for a cgroup without a manager, the owner that writes cgroups. It is an owner behind
// the journal, too.
//
//	Step ──▶ manager of its cgroup? ─┬─ none, or of direct_owners ────▶ owner/cgroup
//	                                 ├─ systemd's ─────────────────────▶ owner/systemd
//	                                 ├─ another one that acts here ───▶ that one
//	                                 └─ kubelet's, podman's, libvirt's ─▶ refused
//
// owner/affinity and owner/resctrl stand before it, and hand on what is not theirs.
//
// A setting goes back to its owner by the kind of its name alone ("/demo/a cpuset.cpus",
// "unit a.service AllowedCPUs"): a restore needs to know nothing of the workload.
//
// It is NOT for: finding the manager of a cgroup (kernel/cgroup), or acting.
package dispatch
