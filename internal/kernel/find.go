// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Workloads are the ids of all cgroups that have processes.
func Workloads(root Root) (ids []string, err error) { return WorkloadsIn(root, nil) }

// WorkloadsIn are the ids of the workloads that an agent with these globs watches; none:
// Workloads.
func WorkloadsIn(root Root, globs []string) (ids []string, err error) {
	layout, err := cgroup.Find(root)
	if err != nil {
		return nil, err
	}
	all, err := layout.Discover(globs)
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// FindWorkload finds the workload with that id, or with an id that ends in that name.
func FindWorkload(root Root, name string) (string, error) {
	all, err := Workloads(root)
	if err != nil {
		return "", err
	}
	var found []string
	for _, id := range all {
		if id == name {
			return id, nil
		}
		if path.Base(id) == name {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("find workload %s: no cgroup with processes has that path, or that name (%w)", name, ErrGone)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("find workload %s: several workloads have that name: give the path: %s (%w)", name, strings.Join(found, ", "), ErrMalformed)
}

// maxAsked is the number of a workload's processes whose user is read.
const maxAsked = 64

// RunsAs says that one of a workload's processes belongs to a user.
func RunsAs(root Root, workload string, uid uint32) bool {
	layout, err := cgroup.Find(root)
	if err != nil {
		return false
	}
	var buf unix.Buffer
	pids, _ := layout.PIDs(nil, workload, &buf) // a process that cannot be read is not that user's
	for _, pid := range pids[:min(maxAsked, len(pids))] {
		s, err := unix.Parsed(&buf, root.Path(fmt.Sprintf("/proc/%d/status", pid)), procfs.ParseTaskStatus)
		if err == nil && s.UID.Or(-1) == int(uid) {
			return true
		}
	}
	return false
}

// FindCgroup is the id of a cgroup, given as such or as its directory.
func FindCgroup(root Root, name string) (string, error) {
	layout, err := cgroup.Find(root)
	if err == nil {
		err = layout.NeedCpuset()
	}
	if err != nil {
		return "", err
	}
	id := path.Clean("/" + strings.TrimPrefix(filepath.Clean(name), layout.Cpuset.Mount))
	if id == "/" {
		return "", fmt.Errorf("find cgroup %s: the root is no workload: leave the flag out to see the host (%w)", name, ErrMalformed)
	}
	if _, err := unix.Inode(layout.Path(layout.Cpuset, id, "")); err != nil {
		return "", fmt.Errorf("find cgroup %s: no cgroup has that path below %s (%w)", name, layout.Cpuset.Mount, ErrGone)
	}
	found, err := layout.Discover([]string{Literal(id)})
	if err == nil && !slices.ContainsFunc(found, func(c cgroup.Cgroup) bool { return c.ID == id }) {
		err = errors.New("no process is in it or below")
	}
	if err != nil {
		return "", fmt.Errorf("find cgroup %s: %w", name, err)
	}
	return id, nil
}

// CgroupInode tells a cgroup from a later one of the same name.
func CgroupInode(root Root, id string) (uint64, error) {
	layout, err := cgroup.Find(root)
	if err == nil {
		err = layout.NeedCpuset()
	}
	if err != nil {
		return 0, err
	}
	return unix.Inode(layout.Path(layout.Cpuset, id, ""))
}

// Literal is a glob that matches exactly one cgroup: systemd's names have backslashes.
func Literal(id string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(id)
}

// ownFiles are file systems whose files the kernel itself serves from memory or disks, and
// that only root can mount where the agent sees them. FUSE and network file systems may not
// answer; what the kernel makes up (proc, tracefs) may not end.
var ownFiles = []string{"tmpfs", "ramfs", "ext2", "ext3", "ext4", "xfs", "btrfs"}

// ServedByKernel says that a mount's files can be read without waiting for another process.
// The mount is one of this process's own namespace, by its id.
func ServedByKernel(mount uint64) bool {
	var buf unix.Buffer
	all, err := unix.Parsed(&buf, "/proc/self/mountinfo", procfs.ParseMountinfo)
	return err == nil && slices.ContainsFunc(all, func(m procfs.Mount) bool { return m.ID == mount && slices.Contains(ownFiles, m.Type) })
}
