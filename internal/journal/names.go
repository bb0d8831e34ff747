// SPDX-License-Identifier: Apache-2.0

package journal

import "strings"

// Kind is the kind of a setting. Its name shows it: "/demo/a", "unit ssh.service".
type Kind string

// The kinds of settings.
const (
	OfCgroup    Kind = "cgroup"    // "/demo/a": its file is written
	OfThread    Kind = "thread"    // "thread 1240"
	OfUnit      Kind = "unit"      // "unit ssh.service": systemd is asked
	OfContainer Kind = "container" // "container docker/ID", "container containerd/NAMESPACE/ID"
	OfResctrl   Kind = "resctrl"   // "resctrl GROUP"
)

// Kind returns the kind of a setting, "" for a name that shows none.
func (s Setting) Kind() Kind {
	if strings.HasPrefix(s.Cgroup, "/") {
		return OfCgroup
	}
	kind, _, _ := strings.Cut(s.Cgroup, " ")
	switch k := Kind(kind); k {
	case OfThread, OfUnit, OfContainer, OfResctrl:
		return k
	}
	return ""
}

// Name is a setting's name without its kind: "ssh.service", "docker/ID"; of a cgroup its
// path.
func (s Setting) Name() string {
	if k := s.Kind(); k != OfCgroup && k != "" {
		return strings.TrimPrefix(s.Cgroup, string(k)+" ")
	}
	return s.Cgroup
}

// manager is the service through which a setting is made: "unit", "container docker". It
// is "" where there is none.
func (s Setting) manager() string {
	switch s.Kind() {
	case OfUnit:
		return string(OfUnit)
	case OfContainer:
		runtime, _, _ := strings.Cut(s.Cgroup, "/")
		return runtime
	}
	return ""
}

// Named is a setting of a kind other than a cgroup's.
func Named(kind Kind, name, file string) Setting {
	return Setting{Cgroup: string(kind) + " " + name, File: file}
}

// anew says that the owner of the setting is gone, and another object has its name.
func (s Setting) anew() string {
	switch s.Kind() {
	case OfCgroup:
		return "its cgroup was made again"
	case OfThread:
		return "another one has its number now"
	}
	return "another one has its name now"
}

// inCgroup is the file of the workload's cgroup in which an owner's setting takes effect.
// For a setting of a cgroup that is the setting itself.
func (e Entry) inCgroup() Setting {
	switch e.Kind() {
	case OfUnit:
		files := map[string]string{"AllowedCPUs": "cpuset.cpus", "AllowedMemoryNodes": "cpuset.mems"} // by systemd's name
		return Setting{Cgroup: e.Workload, File: files[e.File]}
	case OfContainer:
		return Setting{Cgroup: e.Workload, File: e.File}
	}
	return e.Setting
}

// Sets reports whether the value of a cgroup's file was set by homenode, by a write or
// through its manager.
func (e Entry) Sets(cgroup, file, value string) bool {
	return e.inCgroup() == Setting{cgroup, file} && e.Has(strings.TrimSpace(value))
}
