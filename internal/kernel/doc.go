// SPDX-License-Identifier: Apache-2.0

// Package kernel is the only room that touches Linux. It reads a machine, and
// what its workloads did in a period.
//
//	Root ── ReadMachine ──▶ machine.Machine
//	  ├──── Snapshotter.Read ─▶ snapshot.Snapshot  (one closer look, on demand)
//	  └──── Reader.Read ──▶ window.Window   (deltas since the Read before)
//	           ├─ collect_*.go  a collector for each kind of figure
//	           ├─ cgroup   which hierarchies, which workloads, their files
//	           ├─ procfs   /proc and node meminfo
//	           ├─ perf     events per cgroup × CPU
//	           └─ unix     open files, system calls, sentinels
//	ThreadReader.Read ──▶ window.Window of single threads, many times a second
//	Live ── migrate.Mover     moves pages; cannot be had from a recorded tree
//
// A reader returns what it could read; the rest is unknown, with the reason beside it.
// Window.Problems has a sentence where an operator could do something about it. A
// workload that vanishes between being found and being read is left out.
//
// It is NOT for: writing settings (owner/…), deciding (policy), or naming
// services: Service, Approved and Target are the agent's to fill in.
package kernel
