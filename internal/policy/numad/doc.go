// SPDX-License-Identifier: Apache-2.0

// Package numad is a policy like numad's (Debian's numad 0.5+20150602: its manual
// page numad(8), and what its source does): a pure function, to compare with.
//
//	window ─▶ due? ─▶ candidates ─▶ request ─▶ pick nodes ─▶ Bind one ─▶ 5 s
//	            │      > 300 MB      / 85 %      CPU × memory      │
//	            │      > ½ CPU                                    └─ none ─▶ 15 s
//	            └─ no: only what was begun goes on
//
// What it does in a scan (Step), with numad's function:
//
//  1. Not before the last scan's interval is over (main's loop).
//  2. What nodes have left (update_nodes): idle CPU, of which CPUs that share a core
//     count for 20 % each but the first; free memory and inactive page cache.
//  3. Candidates (manage_loads) use more than half a CPU and more than 300 MB; those
//     never placed come first, by CPU × memory, then the others.
//  4. A request is what it uses / 85 %, and no more CPUs than it has threads. One that
//     was looked at less than five minutes ago waits, unless it sits on the busiest
//     node and moving it would even nodes out.
//  5. Nodes (pick_numa_nodes): what each has left, with what the process itself has
//     there, as weighted memory × weighted CPU; the best chain of near nodes, each
//     divided by its distance squared; nodes of it until the request is met.
//  6. If that is where it is, and 90 % of its memory, nothing. Else it is bound and
//     its memory moved, and the scan ends.
//
// Choices, where windows know less than /proc or where its code hangs on the
// numbers of nodes: a workload is what numad calls a process; its anonymous memory
// is its size (page cache is told by cgroup only); a node's size is the mean of
// them, not node 0's; a request never grows to the virtual size; half of the page
// cache counts as inactive; what another process pinned is left alone. A move to other
// nodes takes a window more: actuate unbinds first.
//
// It is NOT for: acting (actuate), or being better than numad.
package numad
