// SPDX-License-Identifier: Apache-2.0

// Package launch starts programs placed: on some CPUs, with a memory policy. It
// also gives a shared-memory segment a policy that stays with it.
//
//	Request ──Resolve──▶ Placement ──▶ Exec    this process becomes the program
//	  machine, cpuset                ├▶ Run     a child, timed and accounted for
//	                                 └▶ PlaceSegment   mbind of a tmpfs file or SysV segment
//
// CPUs and policy belong to a thread; a program that it starts inherits them, and keeps
// them through execve. They are not enforced: the program may set its own.
//
// It is NOT for: workloads that run already (actuate, owner), or deciding where a
// program is best (trial compares).
package launch
