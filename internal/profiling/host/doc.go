// SPDX-License-Identifier: Apache-2.0

// Package host profiles and places workloads of this host.
//
//	Options ─▶ machine, placements, subject ─▶ profiling.Run, profiling.Place ─▶ files, Report
//
//	a command    launch: its CPUs, its memory bound to their nodes; it ends with this process
//	a workload   journal ─▶ owners: cpuset.cpus; migrate: its memory; at the end back again
//
// Settings go to the journal first: 'homenode restore' puts back what a killed one left.
//
// It is NOT for: deciding (profiling), or printing results (report).
package host
