// SPDX-License-Identifier: Apache-2.0

// Package recording records what this host does, a window a line, to be played again.
//
//	Options ─▶ Windows: read, name services, write ─▶ a file for 'homenode top --replay'
//
// Every window is one write: a kill leaves what was read before. Not for: saving a
// machine (kernel/record), or reading what was recorded (window).
package recording
