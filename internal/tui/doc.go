// SPDX-License-Identifier: Apache-2.0

// Package tui is the screen of `homenode top`: the machine on top, its workloads
// below, and what can be done about them.
//
//	Source ──▶ Frame{Machine, Window} ──▶ timeline ──▶ Model ──▶ canvas ──▶ text
//	                                                    │  ▲
//	                             keys ──────────────────┘  └── Actor (Plan, Apply), Why
//
// It cannot tell the running kernel from a recording: both are a Source. One
// whose frames are all there already is a Tape, and is played at a speed; of the
// other the newest frame is shown. What a screen shows is a pure function of its
// Model, drawn on a grid of cells that no text can leave.
//
// It is NOT for: reading a host (kernel), deciding (policy), or changing
// anything itself: that is the Actor's, which a recording does not have.
package tui
