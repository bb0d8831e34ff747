// SPDX-License-Identifier: Apache-2.0

// Package recording records what this host does, one window per line, for a replay.
//
//	Options ─▶ Windows: read, name services, write ─▶ a file for 'homenode top --replay'
//
// Every window is one write: after a kill, the windows before it are there. Not
// for: saving a machine (kernel/record), or reading recordings (window).
package recording
