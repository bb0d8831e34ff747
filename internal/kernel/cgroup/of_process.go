// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// CpusetIn is the cgroup of a process, or a thread, in the hierarchy that has cpuset;
// false if it is in none, or in one outside of our cgroup namespace ("/../x"), whose
// files cannot be found by its path.
func (l Layout) CpusetIn(members []procfs.Membership) (id string, ok bool) {
	if !l.Cpuset.Present() {
		return "", false
	}
	for _, m := range members {
		if l.Cpuset.V2 && m.Controllers == "" || !l.Cpuset.V2 && slices.Contains(strings.Split(m.Controllers, ","), "cpuset") {
			return path.Clean(m.Path), !strings.HasPrefix(m.Path, "/..")
		}
	}
	return "", false
}

// CpusetOf is CpusetIn of a process, or a thread, by its id.
func (l Layout) CpusetOf(pid int, buf *unix.Buffer) (id string, err error) {
	data, err := buf.ReadFile(l.Root.Path("/proc/" + strconv.Itoa(pid) + "/cgroup"))
	if err != nil {
		return "", unix.Explain("find the cgroup of process", strconv.Itoa(pid), "", err)
	}
	members, err := procfs.ParsePIDCgroup(data)
	if err != nil {
		return "", err
	}
	id, ok := l.CpusetIn(members)
	if !ok {
		return "", fmt.Errorf("find the cgroup of process %d: in the hierarchy that has cpuset it is in no cgroup that can be seen (%w)", pid, unix.ErrNotSupported)
	}
	return id, nil
}
