// SPDX-License-Identifier: Apache-2.0

package kerneltest

import sys "golang.org/x/sys/unix"

// ResctrlRule is an operation on a resctrl file system and how Linux answers: the error, and
// what info/last_cmd_status says afterwards.
type ResctrlRule struct {
	Op, Name, Text string // "make", "remove", "write"
	Errno          sys.Errno
	Says           string
}

// ResctrlRules are held to the fake of this package and to the lab's resctrl, one after the
// other. Each begins with nothing but the default group. Thread 1 is in that.
var ResctrlRules = []ResctrlRule{
	{"make", "info/x", "", sys.EPERM, "ok"},
	{"make", "g", "", 0, "ok"},
	{"make", "g", "", sys.EEXIST, "ok"},
	{"make", "g/h", "", sys.EPERM, "ok"},
	{"make", "g/mon_groups/m", "", 0, "ok"},
	{"make", "mon_groups/d", "", 0, "ok"},
	{"make", "mon_groups/d/mon_groups/e", "", sys.ENOENT, "ok"},
	{"write", "g/tasks", "999999", sys.ESRCH, "No task 999999"},
	{"write", "g/mon_groups/m/tasks", "1", sys.EINVAL, "Can't move task to different control group"},
	{"write", "g/tasks", "1", 0, "ok"},
	{"write", "g/mon_groups/m/tasks", "1", 0, "ok"},
	{"write", "mon_groups/d/tasks", "1", sys.EINVAL, "Can't move task to different control group"},
	{"write", "tasks", "1", 0, "ok"},
	{"write", "mon_groups/d/tasks", "1", 0, "ok"},
	{"write", "g/schemata", "L3:0=5", sys.EINVAL, "The mask 5 has non-consecutive 1-bits"},
	{"write", "g/schemata", "L3:0=0", sys.EINVAL, "Mask out of range"},
	{"write", "g/schemata", "L3:0=1ffffffff", sys.EINVAL, "Mask out of range"},
	{"write", "g/schemata", "L3:0=xyz", sys.EINVAL, "Non-hex character in the mask xyz"},
	{"write", "g/schemata", "MB:0=5", sys.EINVAL, "MB value 5 out of range [10,100]"},
	{"write", "g/schemata", "MB:0=much", sys.EINVAL, "Non-decimal digit in MB value much"},
	{"write", "g/schemata", "MB:0=101", sys.EINVAL, "MB value 101 out of range [10,100]"},
	{"write", "g/schemata", "L2:0=1", sys.EINVAL, "Unknown or unsupported resource name 'L2'"},
	{"write", "g/schemata", "L3:x=1", sys.EINVAL, "Missing '=' or non-numeric domain"},
	{"write", "g/schemata", "L3:99=1", sys.EINVAL, "ok"},
	{"write", "g/schemata", "L3:0=f0;1=f\nMB:1=15", 0, "ok"},
	{"remove", "g/mon_groups", "", sys.EPERM, "ok"},
	{"remove", "info", "", sys.EPERM, "ok"},
	{"remove", "mon_groups/d", "", 0, "ok"},
	{"remove", "g", "", 0, "ok"},
	{"remove", "g", "", sys.ENOENT, "ok"},
}
