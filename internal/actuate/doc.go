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
//  0. If setting CPUs first would make windows worse than the one before (Way): MovePages
//     with nothing set, until that is over; see way.go and depart.go. Every window on the
//     way is compared with the one before. A bind that is worse for longer than expected,
//     or slower, is undone (undo.go), and reported as a refused set-cpus.
//  1. SetCPUs to the online CPUs of the nodes, without reserved ones; if the Bind names
//     CPUs, only these. From then on first touch makes new pages local. A Bind to the
//     same nodes with other CPUs repeats this step, and only what is left of 2 and 3 is
//     done. A Bind to other nodes repeats the whole way, without unbinding in between;
//     see relocate.
//  2. MovePages, from the same window on, if it pays (below): it moves pages that are
//     elsewhere, in the background, within a budget per window (Config.Rate × window
//     length, or × Config.Turn if that is shorter) that all moving workloads share. A
//     workload without a turn in a window waits; that does not count as a failure.
//  3. SetMems when so little is left that the write is short: remote anonymous pages ≤
//     max(ResidualShare × resident, ResidualBytes), and file pages as little, or the
//     mover reported that no more can be moved. If nothing moves for NoProgressWindows,
//     the mems are set if the remainder is ≤ ResidualBound; otherwise only the CPUs
//     stay set, and that is reported. Never for CPUsOnly or PinnedMems: then pages stay
//     where their owner put them.
//  4. Bound: every window the effective CPUs and mems are compared with what was set.
//     Another value is drift: nothing is done, and an Outcome reports it. Remote pages
//     that grow again for NoProgressWindows: back to 2, if it pays.
//
// When it pays (2, 4): remote loads/s × seconds saved a load over the Horizon exceed
// PayRatio × the cost of moving (migration.Pays, with the figures of Config.Profile).
// If not, the job settles, reports it, and checks again every window; it moves once
// moving has paid, on average, over NoProgressWindows. Pages that were moved here
// within the horizon must also earn the cost of that move, and with each move in the
// horizon the patience doubles: so a policy that flips between nodes causes few moves,
// not one for each flip.
//
// Why anonymous pages decide (3): move_pages alone cannot move page cache that no
// process maps, and the cpuset write does not migrate it either; waiting for it would
// never end. File pages count only until the mover reports that no more can be moved;
// with PageCache it also moves those that no process maps.
//
// A Pin (one thread, one period) has no job: it is passed on as a step at once,
// unchanged, and the policy handles its outcome.
//
// An Isolate is kept up, as set-class, while it is asked for in each window: see
// isolate.go.
//
// The applier's duties: it takes the steps in order, drops a workload's further steps
// after one that was not done, reports every outcome in the next window, and journals
// before the first step. State is a cache: if it is lost after a kill, everything is
// restored from the journal and starts again.
//
// It is NOT for: deciding what to bind (policy), doing it (owner, kernel), or
// remembering how to undo it (journal).
package actuate
