// SPDX-License-Identifier: Apache-2.0

// Package freeze knows the cgroup freezer, and starts a guard that thaws what was
// frozen when the process that froze it is gone, however that ended.
//
//	Find ─▶ Freezer ── StartGuard ─▶ Guard       Freezer.Set(true) · Wait
//	           │                       │ socket
//	           └── open file ────▶ homenode-thaw, a process of its own
//	                                 "done" ─▶ ends        end of file, or too long ─▶ thaws, ends
//
// The guard has the freezer's file open before anything is frozen: to thaw it opens
// nothing, and so needs neither a descriptor, nor the path, nor a disk. It has a
// session and a name of its own ("homenode-thaw"), ignores signals, keeps its program
// in memory and stands last in line for the OOM killer, where that is permitted. A name
// does not hide it from who looks for the program's path (pkill -f homenode).
//
// A service manager that ends a unit, or an engine that ends a container, kills
// every process in its cgroup. So the guard leaves for the root cgroup of the
// hierarchies that they kill by (v2, and systemd's on v1), which does no harm: it
// sleeps, and is gone with the freeze. It cannot where it is not root, where only a
// part of the hierarchy is mounted or seen (a container's own cgroup namespace), or
// where the container's end takes its pid namespace along. There, what is killed
// together with its guard stays frozen until the next homenode: see owner/cgroup.
//
// It is NOT for: deciding to freeze, or keeping record of it (owner, journal).
package freeze
