// SPDX-License-Identifier: Apache-2.0

// Package freeze knows the cgroup freezer, and starts a guard that thaws what was
// frozen when the process that froze it is gone, however that ended.
//
//	who freezes ──pipe──▶ guard (a process of its own) ──EOF or too long──▶ thaw
//
// It is NOT for: deciding to freeze, or keeping record of it (owner, journal).
package freeze
