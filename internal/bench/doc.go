// SPDX-License-Identifier: Apache-2.0

// Package bench measures a machine into a profile.
//
//	Options ─▶ part by part: plan ─▶ pieces, repeats interleaved ─▶ Prober ─▶ figures ─▶ Save
//	                           ▲                                                │
//	                           └──────────── prior profile (resuming) ◀─────────┘
//
// A part is what --only names; a piece is the smallest unit that is saved and not
// measured again. Sizes are relative to the last-level cache, so caches come first.
// Pure: the prober does the work, and Options.Now is the clock.
//
// It is NOT for: touching the machine (kernel/membench), the form of the result
// (profile), or showing it (report/profile).
package bench
