// SPDX-License-Identifier: Apache-2.0

package cgroup

import "strings"

// Who may manage a cgroup. Everybody but NoOwner will overwrite, or be confused
// by, a direct write.
const (
	NoOwner    = "none"
	Systemd    = "systemd"
	Kubelet    = "kubelet"
	Docker     = "docker"
	Containerd = "containerd"
	Podman     = "podman"
	Libvirt    = "libvirt"
)

// OwnerOf guesses from a cgroup's path who manages it. The outermost manager
// wins where one stands behind another (kubelet before containerd), the more
// special one where systemd only lends its tree (docker-….scope).
//
//	/kubepods.slice/…/cri-containerd-1a2b.scope   kubelet
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
	{Docker, prefixed("docker-")},
	{Docker, func(p string) bool { return p == "docker" }},
	{Containerd, prefixed("cri-containerd-", "containerd-", "nerdctl-")},
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
