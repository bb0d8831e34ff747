// SPDX-License-Identifier: Apache-2.0

// Package actuate turns actions (Bind, Unbind, Pin, Isolate) into steps that fit into one
// window each: a pure state machine per workload, spanning windows.
//
//	Bind ─▶ cpus ─▶ pages ─────▶ mems ─▶ bound ◀─┐
//	 │       ▲ ▲      │  ▲                │      │ verified every window
//	 └─ ahead ─┘      │  │                │      │ (memory first)
//	widen ───┤ ◀── Bind to other nodes, from any stage; by cpus where mems need not grow
//	         │        │  │                │      │
//	         │        │  └── pages grow ──┤      │
//	         │        └─▶ cpus-only ◀─────┘──────┘
//	         │                │
//	Unbind ──┴── any stage ───┴─▶ restoring ─▶ (forgotten)
//	another process changed it ─▶ drifted: no step until Unbind
//	the workload vanished ──────▶ (forgotten)
//
// Why in steps: on cgroup v2 writing cpuset.mems migrates pages at once, inside
// the write; MAO measured 0.65 s per GB. So, for a Bind:
//
//  0. Where CPUs first would make windows worse than the one before (Way): MovePages with
//     nothing set, until that is over; see way.go and depart.go. Every window on the way is
//     held against the one before, and what is worse for longer than was expected, or
//     slower, is undone (undo.go), and reported as a refused set-cpus.
//  1. SetCPUs to the online CPUs of the nodes, without reserved ones; of these those
//     that the Bind names, where it names any. From then on first touch makes new pages
//     local. A Bind of what is bound to the same nodes, but to other CPUs there, does
//     this again, and only what of 2 and 3 is left to do. Of one that is bound to other
//     nodes it is the whole way anew, without letting go in between; see relocate.
//  2. MovePages, from the same window on, if it pays (below): what is elsewhere, in
//     the background, within a budget per window (Config.Rate × window length, or
//     × Config.Turn where that is shorter) that all moving workloads share. Whose turn
//     did not come in a window waits, without that being held against it.
//  3. SetMems when so little is left that the write is short: remote anonymous
//     pages ≤ max(ResidualShare × resident, ResidualBytes), and file pages as
//     little, or the mover said that no more can be moved. Where nothing moves
//     for NoProgressWindows, set it if the remainder is ≤ ResidualBound, else stay
//     with the CPUs alone and say so. Never for CPUsOnly or PinnedMems: then
//     pages stay where their owner put them.
//  4. Bound: every window compare the effective CPUs and mems with what was set.
//     Another value is drift: nothing is done, and an Outcome reports it.
//     Remote pages that grow again for NoProgressWindows: back to 2, if it pays.
//
// When it pays (2, 4): remote loads/s × seconds saved a load over the Horizon exceed
// PayRatio × what moving costs (migration.Pays, with the figures of Config.Profile).
// If not, the job settles, says so, and looks again every window; it moves once it
// has paid, on the average, over NoProgressWindows. Pages that were moved here within the horizon must
// earn that cost too, and with each move in the horizon the patience doubles: so a
// policy that flips between nodes has few journeys, not one for each flip.
//
// Why anonymous pages decide (3): page cache that no process maps cannot be moved
// by move_pages alone, nor does the cpuset write migrate it; waiting for it would be
// waiting for ever. File pages count only until the mover says that is all; with
// PageCache it also moves those that no process maps.
//
// A Pin (one thread, one period) has no job: it is passed on as a step at once, as
// it is, and its outcome is the policy's affair.
//
// An Isolate is kept up, as set-class, while it is asked for in each window:
// see isolate.go.
//
// The applier's part of the bargain: it takes the steps in order, drops a
// workload's further steps after one that was not done, reports every outcome in
// the next window, and journals before the first step. State is a cache: lost
// after a kill, everything is restored from the journal and starts anew.
//
// It is NOT for: deciding what to bind (policy), doing it (owner, kernel), or
// remembering how to undo it (journal).
package actuate
