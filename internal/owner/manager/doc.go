// SPDX-License-Identifier: Apache-2.0

// Package manager holds what is common to asking managers of cgroups (PID 1, Docker,
// containerd) to bind what is theirs, instead of writing behind their back.
//
//	owner/docker ─────┐  Cgroups          what the kernel has of a container (owner/cgroup)
//	owner/containerd ─┤  LittleElsewhere  nodes are refused while he would wait for long
//	owner/systemd ────┤  Silence          who has not answered is left alone for a while
//	                  │  Client           HTTP over his unix socket, the first two's
//	owner/cgroup ─────┘  Fits             what the parent does not have is refused
//
// Whoever asks waits: each question has a limit, and one who was silent is not asked again
// at once. What was asked for and not answered may be done all the same (ErrUnsure).
//
// It is NOT for: what an answer means, or which setting is whose; that is each owner's.
package manager
