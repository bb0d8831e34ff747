// SPDX-License-Identifier: Apache-2.0

// Package host is this host for a person who watches it and acts by hand: one window per
// period, and actions as steps.
//
//	Reader ─▶ Window ─┬─▶ the screen ─▶ Plan (a dry run), Apply ─▶ control.Loop ─▶ journal ─▶ owners
//	                  └─▶ Record: a window a line ─▶ a file ─▶ Play ('homenode top --replay'), Study
//
// The policy of the one loop (control) is what the person asks for; the journal records
// each step first. What is bound stays bound when the screen ends. A recorded window is one
// write: a kill leaves what was read before.
//
// Not for: deciding, saving a machine (kernel/record), or reading what was recorded (window).
package host
