// SPDX-License-Identifier: Apache-2.0

// Package source reads what a person names on a command line: a machine (this one, a
// recorded tree, hwloc's XML, a shape), a profile of it, a recording of windows,
// a table of PMU events.
//
//	a name ─▶ Machine.Read ─▶ machine.Machine, what could not be read
//	       ─▶ Profile, ProfileFile ─▶ profile.Profile
//	       ─▶ Recording ─▶ window.Recording
//	       ─▶ EventsOf ─▶ Events: a CPU's event table, and what this host opens of it
//
// Errors say what to name instead, and carry the exit code of bad input. Not for: what
// an agent reads of the running kernel.
package source
