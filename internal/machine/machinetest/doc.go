// SPDX-License-Identifier: Apache-2.0

// Package machinetest gives tests the recorded machines of ../shared/machines: trees of
// /proc and /sys, as hwloc's authors collected them.
//
// It is NOT for: reading a machine out of such a tree (machine.ParseSysfs), and not for
// product code.
package machinetest
