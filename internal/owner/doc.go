// SPDX-License-Identifier: Apache-2.0

// Package owner holds what is common to the owners of settings, and finds the one that acts
// for a workload: the manager of its cgroup or, for a cgroup without a manager, the owner
// that writes cgroups.
//
//	Step ──▶ Router: manager of its cgroup? ─┬─ none, or of direct_owners ────▶ owner/cgroup
//	                                         ├─ systemd's ─────────────────────▶ owner/systemd
//	                                         ├─ another one that acts here ───▶ that one
//	                                         └─ kubelet's, podman's, libvirt's ─▶ refused
//
// A Router is an owner behind the journal, too. owner/affinity and owner/resctrl stand before
// it, and hand on what is not theirs. A setting goes back to its owner by the kind of its
// name alone ("/demo/a cpuset.cpus", "unit a.service AllowedCPUs"): a restore needs to know
// nothing of the workload.
//
// Managers (PID 1, Docker, containerd) are asked to bind their workloads, instead of writing
// the cgroups directly:
//
//	owner/docker ─────┐  Cgroups         what the kernel has of a container (owner/cgroup)
//	owner/containerd ─┤  RefuseSlowMove  nodes are refused while the manager would wait for long
//	owner/systemd ────┤  Backoff         a manager that has not answered is left alone for a while
//	                  │  Client          HTTP over the unix socket of the first two
//	owner/cgroup ─────┘  Fits            what the parent does not have is refused
//
// The caller waits: each request has a limit, and a manager that did not answer is not
// asked again at once. A request without an answer may be done all the same (ErrUnsure).
//
// It is NOT for: finding the manager of a cgroup (kernel/cgroup), what an answer means, or
// which owner has a setting; each owner decides that.
package owner
