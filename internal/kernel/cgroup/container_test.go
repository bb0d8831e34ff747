// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// Paths as they are on hosts: the kubelet's with both drivers and every quality of
// service, in kind, with containerd and CRI-O; and names that resemble them.
func TestOwnersOfContainers(t *testing.T) {
	const pod, id = "pod1f3c0f3e_1b8c_4a52_9c9d_0c6d5a5f0001", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	for path, want := range map[string]string{
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-" + pod + ".slice/cri-containerd-" + id + ".scope":                                       Kubelet,
		"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-" + pod + ".slice/crio-" + id + ".scope":                                               Kubelet,
		"/kubepods.slice/kubepods-" + pod + ".slice/crio-conmon-" + id + ".scope":                                                                             Kubelet,
		"/kubepods.slice/kubepods-" + pod + ".slice/docker-" + id + ".scope":                                                                                  Kubelet,
		"/kubepods/burstable/pod1f3c0f3e-1b8c-4a52-9c9d-0c6d5a5f0001/" + id:                                                                                   Kubelet,
		"/kubepods/pod1f3c0f3e-1b8c-4a52-9c9d-0c6d5a5f0001/" + id:                                                                                             Kubelet,
		"/kubepods/besteffort/pod1f3c0f3e-1b8c-4a52-9c9d-0c6d5a5f0001/crio-" + id:                                                                             Kubelet,
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-" + pod + ".slice/cri-containerd-" + id + ".scope": Kubelet,
		"/docker/" + id + "/kubelet/kubepods/besteffort/pod1f3c0f3e/" + id:                                                                                    Kubelet,
		"/system.slice/docker-" + id + ".scope/kubelet.slice/kubelet-kubepods.slice/x":                                                                        Kubelet,
		"/system.slice/cri-containerd-" + id + ".scope":                                                                                                       Kubelet,
		"/system.slice/crio-" + id + ".scope":                                                                                                                 CRIO, "/machine.slice/libpod-" + id + ".scope": Podman,
		"/system.slice/docker-" + id + ".scope": Docker, "/docker/" + id: Docker, "/docker/buildx/" + id: Docker,
		"/user.slice/user-1000.slice/user@1000.service/user.slice/nerdctl-" + id + ".scope": Containerd,
		"/system.slice/containerd-lent.scope":                                               Containerd, "/system.slice/containerd.service": Systemd, "/system.slice/docker.service": Systemd,
		"/system.slice/crio.service": Systemd, "/system.slice/kubelet.service": Systemd,
	} {
		if got := OwnerOf(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestContainerOf(t *testing.T) {
	const stat = "%d (%s) S %d 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
	files := kerneltest.Files{
		"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/cgroup.controllers": "cpuset\n",
	}
	for i, c := range []struct{ cgroup, namespace, id string }{
		{"/any/where", "x", "own"}, {"/system.slice/nerdctl-1a.scope", "default", "1a"}, {"/default/named", "other", "real"},
		{"/kubepods/pod1/c2", KubeletNamespace, "sandbox"},
	} {
		pid := 100 + 10*i
		files[fmt.Sprintf("/sys/fs/cgroup%s/cgroup.procs", c.cgroup)] = fmt.Sprintf("%d\n", pid)
		files[fmt.Sprintf("/proc/%d/stat", pid)] = fmt.Sprintf(stat, pid, "load", pid+1)
		files[fmt.Sprintf("/proc/%d/cgroup", pid)] = "0::" + c.cgroup + "/init.scope\n"
		files[fmt.Sprintf("/proc/%d/stat", pid+1)] = fmt.Sprintf(stat, pid+1, "containerd-shim", 1)
		files[fmt.Sprintf("/proc/%d/status", pid+1)] = "Uid:\t0\t0\t0\t0\n"
		files[fmt.Sprintf("/proc/%d/cmdline", pid+1)] = "shim\x00-namespace\x00" + c.namespace + "\x00-id\x00" + c.id + "\x00"
	}
	l, err := Find(kerneltest.Tree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	var buf unix.Buffer
	for path, want := range map[string]Container{
		"/system.slice/docker-1a2b.scope": {ID: "1a2b"}, "/docker/1a2b": {ID: "1a2b"}, "/parent/1a2b/x": {ID: "x"},
		"/default/own": {"own", "default"}, "/any/where": {"own", "x"}, "/system.slice/nerdctl-1a.scope": {"1a", "default"},
		"/default/named": {"real", "other"}, "/kubepods/pod1/c2": {"c2", KubeletNamespace}, "/system.slice/other.scope": {ID: "other"},
	} {
		if got := l.ContainerOf(path, &buf); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	for pid, want := range map[int]string{100: "/any/where/init.scope", 110: "/system.slice/nerdctl-1a.scope"} {
		if got, err := l.CgroupOf(pid, "1a", &buf); got != want || err != nil {
			t.Errorf("%d: %s, %v", pid, got, err)
		}
	}
}
