// SPDX-License-Identifier: Apache-2.0

// Package host is this host for a person who watches it and acts by hand: windows, one a
// period, and actions as steps.
//
//	Reader ─▶ Window ─┬─▶ the screen ─▶ Plan (a dry run), Apply ─▶ control.Loop ─▶ journal ─▶ owners
//	                  └─▶ Record: a window a line ─▶ a file ─▶ Play ('homenode top --replay'), Study
//
// What is asked for by hand is the policy of the one loop (control); the journal stands
// before each step. What is bound stays bound when the screen ends. A recorded window is one
// write: a kill leaves what was read before.
//
// Not for: deciding, saving a machine (kernel/record), or reading what was recorded (window).
package host
