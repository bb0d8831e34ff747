// SPDX-License-Identifier: Apache-2.0

// Package ownerclient holds what is common to managers of cgroups (PID 1, Docker,
// containerd). homenode asks them to bind their workloads, instead of writing the cgroups
// directly.
//
//	owner/docker ─────┐  Cgroups          what the kernel has of a container (owner/cgroup)
//	owner/containerd ─┤  LittleElsewhere  nodes are refused while the manager would wait for long
//	owner/systemd ────┤  Silence          a manager that has not answered is left alone for a while
//	                  │  Client           HTTP over the unix socket of the first two
//	owner/cgroup ─────┘  Fits             what the parent does not have is refused
//
// The caller waits: each request has a limit, and a manager that did not answer is not
// asked again at once. A request without an answer may be done all the same (ErrUnsure).
//
// It is NOT for: what an answer means, or which owner has a setting; each owner decides
// that.
package ownerclient
