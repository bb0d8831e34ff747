// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strconv"
	"strings"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
)

// Owner is OwnerOf. Where the path shows no owner, it finds what started the processes
// there. containerd without systemd's cgroups names them /NAMESPACE/ID, as a
// person could; but a shim is an ancestor of every process in its containers
// (it is their subreaper).
func (l Layout) Owner(id string, buf *unix.Buffer) string {
	if owner := OwnerOf(id); owner != NoOwner {
		return owner
	}
	pids, _ := l.PIDs(nil, id, buf) // processes that cannot be read are skipped
	for _, pid := range pids {
		if owner, ok := l.shimAbove(pid, buf); ok {
			return owner
		}
	}
	return NoOwner
}

// maxAncestors ends the walk where a process tree changes under it.
const maxAncestors = 64

// maxCmdline is read of a command line, which may have megabytes. A shim's first argument
// is its namespace.
const maxCmdline = 4 << 10

// shimAbove finds the owner of the shim above a process. ok is false when the process is
// gone, and another has to be asked.
func (l Layout) shimAbove(pid int, buf *unix.Buffer) (owner string, ok bool) {
	cmdline, ok := l.shimOf(pid, buf)
	if ok && cmdline == nil {
		return NoOwner, true
	}
	return shimOwner(cmdline), ok
}

// shimOf walks from a process to init, and returns the command line of a shim on the
// way; none, if there is no shim.
func (l Layout) shimOf(pid int, buf *unix.Buffer) (cmdline []byte, ok bool) {
	file := func(name string) string { return l.Root.Path("/proc/" + strconv.Itoa(pid) + "/" + name) }
	for range maxAncestors {
		data, err := buf.ReadFile(file("stat"))
		if err != nil {
			return nil, false
		}
		s, err := procfs.ParseTaskStat(data)
		if err != nil {
			return nil, false
		}
		// containerd-shim-runc-v2, cut to the kernel's 15 characters
		if procfs.TaskName(data) == "containerd-shim" && ofRoot(file("status"), buf) {
			cmdline, _ := buf.Head(file("cmdline"), maxCmdline)
			return append([]byte{}, cmdline...), true
		}
		if s.Parent <= 0 {
			break
		}
		pid = s.Parent
	}
	return nil, true
}

// ofRoot says that root started a process, and that it runs as root. Any user can call a
// process containerd-shim, or start a setuid program under that name, to keep its cgroup
// from being bound.
func ofRoot(status string, buf *unix.Buffer) bool {
	s, err := unix.Parsed(buf, status, procfs.ParseTaskStatus)
	return err == nil && s.UID.Or(-1) == 0 && s.Real.Or(-1) == 0
}

// shimOwner reads which manager a shim works for from /proc/PID/cmdline:
//
//	/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\01a2b…\0
func shimOwner(cmdline []byte) string {
	switch argument(cmdline, "-namespace") {
	case DockerNamespace:
		return Docker
	case KubeletNamespace:
		return Kubelet
	}
	return Containerd
}

// argument is what follows a name on a command line; "" if that is not there.
func argument(cmdline []byte, name string) string {
	args := strings.Split(string(cmdline), "\x00")
	for i, arg := range args[:len(args)-1] {
		if arg == name {
			return args[i+1]
		}
	}
	return ""
}
