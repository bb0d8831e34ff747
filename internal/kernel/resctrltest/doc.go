// SPDX-License-Identifier: Apache-2.0

// Package resctrltest is a resctrl file system in memory: mkdir makes the files, RMIDs
// and CLOSIDs run out and rest in limbo, tasks belong to one group of each kind, and
// counters advance as tasks move bytes. It does what Documentation/filesystems/
// resctrl.rst and fs/resctrl say; real hardware was never compared with it.
//
// It is NOT for: anything outside tests.
package resctrltest
