// SPDX-License-Identifier: Apache-2.0

// Package procfs parses what the kernel prints below /proc, and the meminfo of a node
// in sysfs. Every parser is a pure function of bytes, named after its file. It is
// strict about what it needs and ignores the rest; it converts units once, here.
//
//	/proc/stat  /proc/PID/numa_maps  /proc/PID/maps  …  ──▶ values
//
// An error wraps ErrMalformed, names file, line and text, and comes with the
// zero value. It is NOT for: opening files, deltas, or deciding what to do.
package procfs
