// SPDX-License-Identifier: Apache-2.0

// Package tui is the screen of `homenode top`: the machine on top, its workloads
// below, and the actions on them.
//
//	Source ──▶ Frame{Machine, Window} ──▶ timeline ──▶ Model ──▶ canvas ──▶ text
//	                                                    │  ▲
//	                             keys ──────────────────┘  └── Actor (Plan, Apply), Why
//
// It cannot tell the running kernel from a recording: both are a Source. A
// Source with all frames in memory is a Tape, and is played at a speed. Of any
// other Source the newest frame is shown. A screen is a pure function of its
// Model, drawn on a grid of cells that no text can leave.
//
// It is NOT for: reading a host (kernel), deciding (policy), or changing
// anything itself: the Actor does that, and a recording has none.
package tui
