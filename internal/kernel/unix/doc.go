// SPDX-License-Identifier: Apache-2.0

// Package unix is the thinnest layer over Linux: the root of the file tree, files that
// stay open between rounds, a few system calls, memory policies, and the four sentinel
// errors that every room above knows.
//
//	Root("/" or a recorded tree) ──▶ Kept ──▶ bytes
//	Live (only the running kernel) ──▶ perf_event_open, move_pages, writes
//	MemPolicy ──Number──▶ mode ─┐
//	NodeSet ─────────▶ nodemask ┴─▶ set_mempolicy (a thread), mbind (a mapping)
//
// It is NOT for: meaning. procfs and cgroup parse formats; launch and bench choose a
// policy, and say why the kernel refused one.
package unix
