// SPDX-License-Identifier: Apache-2.0

// Package freeze drives the cgroup freezer, and starts a guard that thaws what was frozen
// when the process that froze it is gone, however that ended.
//
//	Find ─▶ Freezer ── StartGuard ─▶ Guard       Freezer.Set(true) · Wait
//	           │                       │ socket
//	           └── open file ────▶ homenode-thaw, a process of its own
//	                                 "done" ─▶ ends        end of file, or too long ─▶ thaws, ends
//
// The guard has the freezer's file open before anything is frozen. To thaw it opens
// nothing, and so needs neither a descriptor, nor the path, nor a disk. It has a session
// and a name of its own ("homenode-thaw"), ignores signals, keeps its program in memory
// and is last in line for the OOM killer, where that is permitted. The name does not
// protect it from a search for the program's path (pkill -f homenode).
//
// A service manager that ends a unit, or an engine that ends a container, kills every
// process in its cgroup. So the guard moves to the root cgroup of the hierarchies by
// which they kill (v2, and systemd's on v1). That does no harm: it sleeps, and ends with
// the freeze. It cannot move where it is not root, where only a part of the hierarchy is
// mounted or seen (a container's own cgroup namespace), or where the container's end
// takes its pid namespace along. There, a cgroup whose freezer is killed together with
// its guard stays frozen until the next homenode: see owner/cgroup.
//
// It is NOT for: deciding to freeze, or recording it (owner, journal).
package freeze
