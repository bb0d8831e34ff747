// SPDX-License-Identifier: Apache-2.0

package cgroup

import "strings"

// The managers of cgroups. All but NoOwner overwrite a direct write, or are confused by
// it.
const (
	NoOwner    = "none"
	Systemd    = "systemd"
	Kubelet    = "kubelet"
	Docker     = "docker"
	Containerd = "containerd"
	CRIO       = "crio"
	Podman     = "podman"
	Libvirt    = "libvirt"
)

// LeftAlone says that an owner's workloads are only observed, unless the configuration
// names the owner (direct_owners): homenode does not talk to it, or it places them itself.
func LeftAlone(owner string) bool {
	switch owner {
	case NoOwner, Systemd, Docker, Containerd:
		return false
	}
	return true
}

// OwnerOf guesses from a cgroup's path what manages it. The outermost manager
// wins where one stands behind another (kubelet before containerd), the more
// special one where systemd only lends its tree (docker-….scope).
//
//	/kubepods.slice/…/cri-containerd-1a2b.scope   kubelet
//	/kubelet.slice/kubelet-kubepods.slice/…       kubelet, with a --cgroup-root (kind)
//	/system.slice/cri-containerd-1a2b.scope       kubelet: nothing else speaks CRI
//	/system.slice/docker-1a2b.scope, /docker/1a2b docker
//	/machine.slice/machine-qemu….scope            libvirt
//	/system.slice/ssh.service                     systemd
//	/demo/a                                       none
func OwnerOf(id string) string {
	parts := strings.Split(strings.Trim(id, "/"), "/")
	for _, rule := range ownerRules {
		for _, p := range parts {
			if rule.match(p) {
				return rule.owner
			}
		}
	}
	return NoOwner
}

var ownerRules = []struct {
	owner string
	match func(part string) bool
}{
	{Kubelet, prefixed("kubepods")},
	{Kubelet, func(p string) bool { return strings.Contains(p, "-kubepods") }},
	{Kubelet, prefixed("cri-containerd-")},
	{Docker, prefixed("docker-")},
	{Docker, func(p string) bool { return p == "docker" }},
	{Containerd, prefixed("containerd-", "nerdctl-")},
	{CRIO, prefixed("crio-")},
	{Podman, prefixed("libpod-")},
	{Libvirt, prefixed("machine-qemu", "machine-lxc")},
	{Libvirt, func(p string) bool {
		return p == "machine.slice" || p == "machine" || strings.HasSuffix(p, ".libvirt-qemu") || p == "libvirt"
	}},
	{Systemd, func(p string) bool {
		return strings.HasSuffix(p, ".slice") || strings.HasSuffix(p, ".service") || strings.HasSuffix(p, ".scope")
	}},
}

func prefixed(prefixes ...string) func(string) bool {
	return func(part string) bool {
		for _, p := range prefixes {
			if strings.HasPrefix(part, p) {
				return true
			}
		}
		return false
	}
}
