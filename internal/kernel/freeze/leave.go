// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"os"
	"slices"
	"strconv"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// leave moves this process to the root cgroup of the hierarchies by which service
// managers and engines kill, and of the freezer.
func leave(root unix.Root) {
	var buf unix.Buffer
	mounts, err := unix.Parsed(&buf, root.Path("/proc/self/mountinfo"), procfs.ParseMountinfo)
	if err != nil {
		return
	}
	for _, m := range mounts {
		if isKilledBy(m) && isRoot(root, m) {
			_ = os.WriteFile(root.Path(m.Point+"/cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
		}
	}
}

// isKilledBy: cpuset, memory and the like stay as they are, since their limits do no harm
// to the guard.
func isKilledBy(m procfs.Mount) bool {
	return m.Type == "cgroup2" || m.Type == "cgroup" && (slices.Contains(m.Super, "name=systemd") || slices.Contains(m.Super, "freezer"))
}

// isRoot reports that the mount's top is the hierarchy's root. In a container it may be
// its own cgroup, which mountinfo calls "/" in a cgroup namespace: that one has
// cgroup.events (v2), and lacks release_agent (v1).
func isRoot(root unix.Root, m procfs.Mount) bool {
	has := func(file string) bool {
		_, err := os.Lstat(root.Path(m.Point + "/" + file))
		return err == nil
	}
	if m.Type == "cgroup2" {
		return m.Root == "/" && !has("cgroup.events") && has("cgroup.procs")
	}
	return m.Root == "/" && has("release_agent")
}
