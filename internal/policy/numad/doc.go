// SPDX-License-Identifier: Apache-2.0

// Package numad is a policy like numad, a pure function to compare with. Its sources are
// the manual page numad(8) and the code of Debian's numad 0.5+20150602.
//
//	window ─▶ due? ─▶ candidates ─▶ request ─▶ pick nodes ─▶ Bind one ─▶ 5 s
//	            │      > 300 MB      / 85 %      CPU × memory      │
//	            │      > ½ CPU                                    └─ none ─▶ 15 s
//	            └─ no: only what was begun goes on
//
// A scan (Step) does this; numad's function is in brackets:
//
//  1. It waits until the last scan's interval is over (main's loop).
//  2. It computes what nodes have left (update_nodes): idle CPU, where each further CPU of
//     a core counts for 20 %; free memory and inactive page cache.
//  3. Candidates (manage_loads) use more than half a CPU and more than 300 MB. Those never
//     placed come first, by CPU × memory, then the others.
//  4. A request is what the workload uses / 85 %, but no more CPUs than it has threads. A
//     workload that was examined less than five minutes ago waits, unless it is on the
//     busiest node and moving it would balance the nodes.
//  5. Nodes are picked (pick_numa_nodes) by what each has left, together with what the
//     process itself has there, as weighted memory × weighted CPU. The best chain of near
//     nodes wins, each node divided by its distance squared; nodes are taken from it until
//     the request is met.
//  6. If the workload is already there, with 90 % of its memory, nothing happens. Else it
//     is bound, its memory is moved, and the scan ends.
//
// Our choices, where windows know less than /proc or where numad's code depends on the
// numbers of nodes: a workload is what numad calls a process; its anonymous memory is its
// size (page cache is known by cgroup only); a node's size is the mean over nodes, not node
// 0's; a request never grows to the virtual size; half of the page cache counts as
// inactive; what another process pinned is left alone. A move to other nodes takes one
// window more, as actuate unbinds first.
//
// It is NOT for: acting (actuate), or being better than numad.
package numad
