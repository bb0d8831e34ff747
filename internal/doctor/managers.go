// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A cgroup's settings are changed through its manager, where the manager can be named:
// it overwrites a direct write, or is confused by it.

func (l view) cpusetV2() bool {
	return l.Cgroups.Cpuset.V2 || l.Cgroups.Cpuset.Path == ""
}

func (l view) memoryV2() bool {
	return l.Cgroups.Memory.V2 || l.Cgroups.Memory.Path == ""
}

// bind restricts a workload to CPUs and nodes; an empty set changes nothing. The kernel
// moves the pages by itself: on v1 only with cpuset.memory_migrate.
func (l view) bind(w window.Workload, cpus set.CPUSet, mems set.NodeSet) []string {
	unitName, ofSystem := systemdUnit(w.ID)
	switch {
	case w.Owner == "systemd" && !ofSystem:
		return []string{"homenode why " + quote(w.ID)} // managed names its manager
	case w.Owner == "systemd" && l.cpusetV2():
		return []string{systemdBind(unitName, cpus, mems)}
	case w.Owner == "docker" && containerID(w.ID) != "":
		return []string{dockerBind(containerID(w.ID), cpus, mems)}
	}
	var out []string
	if !cpus.IsEmpty() {
		out = append(out, l.write(cpus.String(), w.ID, "cpuset.cpus"))
	}
	if !mems.IsEmpty() {
		if !l.cpusetV2() {
			out = append(out, l.write("1", w.ID, "cpuset.memory_migrate"))
		}
		out = append(out, l.write(mems.String(), w.ID, "cpuset.mems"))
	}
	return out
}

// askManager says of a workload for which bind and limit only name its manager that
// nothing changes; "" otherwise.
func (l view) askManager(w window.Workload) string {
	if _, ofSystem := systemdUnit(w.ID); w.Owner == "systemd" && !ofSystem {
		return onlyShow("its manager changes its cgroup")
	}
	return ""
}

func (l view) write(what, id, file string) string {
	return fmt.Sprintf("echo %s > %s", what, cgroupFile(l.Cgroups.Cpuset, id, file))
}

func systemdBind(name string, cpus set.CPUSet, mems set.NodeSet) string {
	out := "systemctl set-property --runtime -- " + quote(name)
	if !cpus.IsEmpty() {
		out += " AllowedCPUs=" + cpus.String()
	}
	if !mems.IsEmpty() {
		out += " AllowedMemoryNodes=" + mems.String()
	}
	return out
}

func dockerBind(container string, cpus set.CPUSet, mems set.NodeSet) string {
	out := "docker update"
	if !cpus.IsEmpty() {
		out += " --cpuset-cpus " + cpus.String()
	}
	if !mems.IsEmpty() {
		out += " --cpuset-mems " + mems.String()
	}
	return out + " " + container
}

// limit raises a memory limit of a cgroup: the workload's own or one above it.
func (l view) limit(w window.Workload, id string, to unit.Bytes) []string {
	bytes := strconv.FormatInt(int64(to), 10)
	name, ofSystem := systemdUnit(id)
	switch {
	case w.Owner == "systemd" && !ofSystem:
		return []string{"homenode why " + quote(w.ID)}
	case (w.Owner == "systemd" || w.Owner == "docker" && containerID(id) == "" && ofSystem) && l.memoryV2():
		return []string{"systemctl set-property --runtime -- " + quote(name) + " MemoryMax=" + bytes}
	case w.Owner == "docker" && containerID(id) != "":
		return []string{"docker update --memory " + bytes + " " + containerID(id)}
	}
	file := "memory.max"
	if !l.memoryV2() {
		file = "memory.limit_in_bytes"
	}
	return []string{"echo " + bytes + " > " + cgroupFile(l.Cgroups.Memory, id, file)}
}

const (
	unitChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\@" // VALID_CHARS of systemd's unit-name.c
	slice     = ".slice"
)

// systemdUnit is the unit of the system's manager that a cgroup belongs to:
//
//	/system.slice/db.service                     db.service
//	/system.slice/db.service/worker              none: db.service manages it
//	/user.slice/…/user@1000.service/app.service  none: that user's manager does
//
// The user or service to which a cgroup is delegated may give any name to the cgroups
// below it, so nothing below a service or a scope is taken for a unit.
func systemdUnit(id string) (name string, ok bool) {
	above, name := path.Split(strings.TrimSuffix(id, "/"))
	for _, part := range strings.Split(strings.Trim(above, "/"), "/") {
		if part != "" && !strings.HasSuffix(part, slice) {
			return "", false
		}
	}
	suffix := path.Ext(name)
	known := suffix == ".service" || suffix == ".scope" || suffix == slice
	if !known || name == suffix || strings.Trim(name, unitChars) != "" {
		return "", false
	}
	return name, true
}

// containerID finds Docker's name of a container in its cgroup's path.
func containerID(id string) string {
	base := strings.TrimSuffix(strings.TrimPrefix(path.Base(id), "docker-"), ".scope")
	if len(base) < 12 || strings.Trim(base, "0123456789abcdef") != "" {
		return ""
	}
	return base[:12]
}

// managed says which manager will overwrite or refuse a write to a workload's cgroup.
func managed(w window.Workload) string {
	switch w.Owner {
	case "kubelet":
		return " Its cgroup belongs to the kubelet, which writes it again: use the CPU Manager's static policy with the Memory Manager to keep it."
	case "libvirt":
		return " Its cgroup belongs to libvirt: virsh vcpupin and virsh numatune keep it."
	case "containerd", "podman":
		return " Its cgroup belongs to " + w.Owner + ", which may write it again."
	case "systemd":
		if _, ok := systemdUnit(w.ID); !ok {
			return " Its cgroup is not a unit of the system's: it belongs to the service or the user's manager above it: change it there."
		}
	}
	return ""
}

// Where a workload may go: its binding is a decision of its manager or user, and advice
// stays within it. A binding that is not known does not restrict.

// mayRunOn are the CPUs of nodes that a workload may use.
func (l view) mayRunOn(w window.Workload, nodes set.NodeSet) set.CPUSet {
	cpus := l.Machine.CPUsOf(nodes)
	if w.Binding.CPUs.IsEmpty() {
		return cpus
	}
	return cpus.Intersect(w.Binding.CPUs)
}

// mayUse says that a workload may have memory on a node, by position.
func (l view) mayUse(w window.Workload, i int) bool {
	return w.Binding.Mems.IsEmpty() || w.Binding.Mems.Has(l.id(i))
}

// mayLive says that it may both run and have memory there.
func (l view) mayLive(w window.Workload, i int) bool {
	return l.mayUse(w, i) && !l.mayRunOn(w, l.nodeSet(l.id(i))).IsEmpty()
}

// roomFor says that a node has this much memory, or can free it by dropping cache; also
// false when that is unknown.
func (l view) roomFor(i int, come unit.Bytes) bool {
	free, ok := l.free(i).Get()
	return ok && free+l.file(i).Or(0) >= come
}
