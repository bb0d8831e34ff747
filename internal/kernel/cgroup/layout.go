// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Hier is one mounted hierarchy; the zero Hier is none.
type Hier struct {
	Mount string // absolute, inside the root
	V2    bool
}

// Present says that there is a hierarchy.
func (h Hier) Present() bool { return h.Mount != "" }

// Layout says which hierarchy has which controller. On a hybrid host some are
// on v1 and the mounted v2 is empty or has the rest.
type Layout struct {
	Root                               unix.Root
	Cpuset, CPU, CPUAcct, Memory, Perf Hier
	// Freezer is the v1 freezer. Unified is v2, with or without controllers: every
	// cgroup in it has its own freezer.
	Freezer, Unified Hier
	// ReadOnly says that the hierarchy of the cpusets is mounted read-only.
	ReadOnly bool
}

// Path is the real path of a cgroup's file in a hierarchy; file "" is its directory.
func (l Layout) Path(h Hier, id, file string) string {
	return l.Root.Path(path.Join(h.Mount, id, file))
}

// Find reads where the hierarchies are mounted.
//
//  1. A controller named in a v1 mount's options is on v1: the kernel gives it
//     to one hierarchy only.
//  2. Otherwise it is on v2 if cgroup.controllers of the mounted v2 names it.
//  3. perf_event is never named there, because every v2 cgroup has it without being
//     enabled (implicit_on_dfl); the same holds for cpu.stat, which stands for cpuacct.
func Find(root unix.Root) (Layout, error) {
	var buf unix.Buffer
	data, err := buf.ReadFile(root.Path("/proc/self/mountinfo"))
	if err != nil {
		return Layout{}, unix.Explain("find cgroups in", "/proc/self/mountinfo", "", err)
	}
	mounts, err := procfs.ParseMountinfo(data)
	if err != nil {
		return Layout{}, fmt.Errorf("find cgroups: %w", err)
	}
	l := Layout{Root: root}
	v2 := mountOf(mounts, "cgroup2", "")
	offered := l.offered(v2)
	pick := func(controller string, implicit bool) Hier {
		if m := mountOf(mounts, "cgroup", controller); m != "" {
			return Hier{Mount: m} // (1)
		}
		if v2 != "" && (implicit || slices.Contains(offered, controller)) {
			return Hier{Mount: v2, V2: true} // (2), (3)
		}
		return Hier{}
	}
	l.Cpuset, l.CPU, l.Memory = pick("cpuset", false), pick("cpu", false), pick("memory", false)
	l.CPUAcct, l.Perf = pick("cpuacct", true), pick("perf_event", true)
	l.Freezer = pick("freezer", false)
	if v2 != "" {
		l.Unified = Hier{Mount: v2, V2: true}
	}
	l.ReadOnly = slices.ContainsFunc(mounts, func(m procfs.Mount) bool { return m.Point == l.Cpuset.Mount && m.ReadOnly })
	return l, nil
}

// mountOf returns the first mount point of that type, whole hierarchies first.
func mountOf(mounts []procfs.Mount, fstype, controller string) string {
	part := ""
	for _, m := range mounts {
		if m.Type != fstype || controller != "" && !slices.Contains(m.Super, controller) {
			continue
		}
		if m.Root == "/" {
			return m.Point
		}
		if part == "" {
			part = m.Point
		}
	}
	return part
}

// offered reads cgroup.controllers of v2: "cpuset cpu io memory hugetlb pids".
func (l Layout) offered(v2 string) []string {
	var buf unix.Buffer
	if v2 == "" {
		return nil
	}
	data, err := buf.ReadFile(l.Root.Path(v2 + "/cgroup.controllers"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

// NeedCpuset explains what is missing when no hierarchy has cpuset.
func (l Layout) NeedCpuset() error {
	if l.Cpuset.Present() {
		return nil
	}
	return fmt.Errorf("discover workloads: no cgroup hierarchy in /proc/self/mountinfo offers cpuset (%w): mount cgroup2 on /sys/fs/cgroup, or boot a kernel with CONFIG_CPUSETS", unix.ErrNotSupported)
}
