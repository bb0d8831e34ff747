// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"homenode/internal/set"
	"homenode/internal/survey"
	"homenode/internal/window"
)

// Commands are pasted into a shell, and names come from outside: a cgroup may be
// called "a; rm -rf /". Everything that is not a plain word is quoted.

const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-"

// quote makes one word of the shell of text. What does not print is written as
// bash's $'\x0a', so that a screen shows what the shell gets.
func quote(text string) string {
	if text != "" && strings.Trim(text, plainChars) == "" {
		return text
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var out strings.Builder
	out.WriteString("$'")
	for i := range len(text) {
		switch b := text[i]; {
		case b == '\'' || b == '\\':
			out.WriteString(`\` + string(b))
		case b < ' ' || b >= 0x7f:
			fmt.Fprintf(&out, `\x%02x`, b)
		default:
			out.WriteByte(b)
		}
	}
	return out.String() + "'"
}

// remark is a comment behind a command: only plain characters survive.
func remark(text string) string {
	return "  # " + strings.Map(func(r rune) rune {
		if strings.ContainsRune(plainChars+" ", r) {
			return r
		}
		return '?'
	}, text)
}

// cgroupFile is a workload's file in a hierarchy. Where the survey does not say
// where that is mounted, it is where systemd mounts it.
func cgroupFile(h survey.Hierarchy, id, file string) string {
	mount := h.Path
	if mount == "" {
		mount = "/sys/fs/cgroup"
	}
	return quote(path.Join(mount, id, file))
}

func (l look) cpusetV2() bool {
	return l.Cgroups.Cpuset.V2 || l.Cgroups.Cpuset.Path == ""
}

// bind restricts a workload to CPUs and nodes; an empty set is left as it is. The
// kernel moves the pages by itself: on v1 only with cpuset.memory_migrate.
func (l look) bind(w window.Workload, cpus set.CPUSet, mems set.NodeSet) []string {
	switch {
	case w.Owner == "systemd" && l.cpusetV2():
		return []string{systemdBind(w.ID, cpus, mems)}
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

func (l look) write(what, id, file string) string {
	return fmt.Sprintf("echo %s > %s", what, cgroupFile(l.Cgroups.Cpuset, id, file))
}

func systemdBind(id string, cpus set.CPUSet, mems set.NodeSet) string {
	out := "systemctl set-property --runtime " + quote(path.Base(id))
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

// containerID finds Docker's name of a container in its cgroup's path.
func containerID(id string) string {
	base := strings.TrimSuffix(strings.TrimPrefix(path.Base(id), "docker-"), ".scope")
	if len(base) < 12 || strings.Trim(base, "0123456789abcdef") != "" {
		return ""
	}
	return base[:12]
}

// managed says who will overwrite or refuse a write to a workload's cgroup.
func managed(w window.Workload) string {
	switch w.Owner {
	case "kubelet":
		return " Its cgroup belongs to the kubelet, which writes it anew: use the CPU Manager's static policy with the Memory Manager to keep it."
	case "libvirt":
		return " Its cgroup belongs to libvirt: virsh vcpupin and virsh numatune keep it."
	case "containerd", "podman":
		return " Its cgroup belongs to " + w.Owner + ", which may write it anew."
	}
	return ""
}

// howAgain goes with the commands of again: once the process is stopped, its
// arguments are gone from /proc.
const howAgain = "the command starts it another time, with the arguments it reads from the running one: stop that one afterwards, or copy its cmdline file before"

// again starts a process's program another time with the same arguments, under a
// policy of numactl.
func again(p survey.Process, policy string) string {
	return fmt.Sprintf("xargs -0 numactl %s < /proc/%d/cmdline", policy, p.PID) + remark(strings.TrimSuffix(p.Name+" of "+p.Workload, " of "))
}

// movePages moves what processes have on some nodes.
func movePages(pids []int, from, to set.NodeSet, most int) []string {
	var out []string
	for _, pid := range pids {
		if len(out) == most {
			break
		}
		out = append(out, "migratepages "+strconv.Itoa(pid)+" "+from.String()+" "+to.String())
	}
	return out
}
