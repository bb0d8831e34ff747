// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"path"
	"strings"

	"homenode/internal/kernel/unix"
)

// Namespaces of containerd that belong to another manager, which has its own records of
// what is in them.
const (
	DockerNamespace  = "moby"
	KubeletNamespace = "k8s.io"
)

// Container is a cgroup as its runtime knows it.
type Container struct {
	ID        string // as its runtime calls it
	Namespace string // of containerd; "" if unknown
}

// ContainerOf finds the container of a cgroup. The path alone shows Docker's and most
// others; a shim's command line shows all of them, unless several containers share the
// shim, as pods do.
//
//	/system.slice/docker-1a2b.scope, /docker/1a2b     1a2b
//	/system.slice/nerdctl-1a2b.scope                  1a2b
//	/default/own, made without systemd                own, in the namespace default
//	/any/where, whose shim has -namespace x -id own   own, in x
func (l Layout) ContainerOf(id string, buf *unix.Buffer) Container {
	c := containerByPath(id)
	pids, _ := l.PIDs(nil, id, buf) // processes that cannot be read are skipped
	for _, pid := range pids {
		cmdline, ok := l.shimOf(pid, buf)
		if !ok {
			continue
		}
		if ns := argument(cmdline, "-namespace"); ns != "" {
			c.Namespace = ns
		}
		if name := argument(cmdline, "-id"); name != "" && c.Namespace != KubeletNamespace {
			c.ID = name
		}
		break
	}
	return c
}

// scopePrefixes are what runtimes put before an id, with systemd's cgroups.
var scopePrefixes = []string{"docker-", "cri-containerd-", "containerd-", "nerdctl-", "crio-"}

func containerByPath(id string) Container {
	name := path.Base(id)
	if scope, ok := strings.CutSuffix(name, ".scope"); ok {
		for _, p := range scopePrefixes {
			if short, ok := strings.CutPrefix(scope, p); ok {
				return Container{ID: short}
			}
		}
		return Container{ID: scope}
	}
	if parts := strings.Split(strings.Trim(id, "/"), "/"); len(parts) == 2 && parts[0] != "docker" {
		return Container{ID: name, Namespace: parts[0]}
	}
	return Container{ID: name}
}

// CgroupOf is the cgroup of a container, of which pid is the first process: that may
// have gone on into a cgroup below, as systemd does in a container.
func (l Layout) CgroupOf(pid int, container string, buf *unix.Buffer) (string, error) {
	own, err := l.CpusetOf(pid, buf)
	if err != nil {
		return "", err
	}
	for at := own; at != "/" && at != "."; at = path.Dir(at) {
		if name := path.Base(at); name == container || strings.HasSuffix(strings.TrimSuffix(name, ".scope"), "-"+container) {
			return at, nil
		}
	}
	return own, nil
}
