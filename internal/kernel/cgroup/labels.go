// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"homenode/internal/kernel/unix"
	"homenode/internal/window"
)

// mostBundle bounds a container's configuration: with hundreds of mounts it has some
// 100 kB.
const mostBundle = 1 << 20

// The annotations of the runtimes that serve Kubernetes: containerd's CRI plugin, CRI-O.
var podAnnotations = []struct{ container, pod, namespace string }{
	{"io.kubernetes.cri.container-name", "io.kubernetes.cri.sandbox-name", "io.kubernetes.cri.sandbox-namespace"},
	{"io.kubernetes.container.name", "io.kubernetes.pod.name", "io.kubernetes.pod.namespace"},
}

// LabelsOf reads what a manager calls a cgroup, from the files that it keeps: no API is
// asked, and no network is used.
//
//	systemd     the path itself
//	Docker      /var/lib/docker/containers/ID/config.v2.json: the name
//	containerd  /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID/config.json:
//	            the annotations of CRI
//	CRI-O       /run/containers/storage/overlay-containers/ID/userdata/config.json: as there
//
// A file that is not there, or not for this user, leaves names unknown.
func (l Layout) LabelsOf(id string, buf *unix.Buffer) window.Labels {
	owner := l.Owner(id, buf)
	if owner == Systemd {
		return window.Labels{Unit: unitOf(id)}
	}
	c := Container{}
	switch owner {
	case Docker, CRIO:
		c = containerByPath(id)
	case Kubelet:
		if c = containerByPath(id); strings.HasPrefix(c.ID, "pod") { // the pod's own cgroup
			return window.Labels{}
		}
		c.Namespace = KubeletNamespace
	case Containerd:
		c = l.ContainerOf(id, buf)
	default:
		return window.Labels{}
	}
	if !plainName(c.ID) || c.Namespace != "" && !plainName(c.Namespace) {
		return window.Labels{}
	}
	return l.labelsOf(owner, c)
}

func (l Layout) labelsOf(owner string, c Container) window.Labels {
	read := func(file string) []byte {
		data, err := unix.ReadAtMost(l.Root.Path(file), mostBundle)
		if err != nil {
			return nil
		}
		return data
	}
	found := window.Labels{}
	switch owner {
	case Docker:
		found, _ = parseDockerLabels(read("/var/lib/docker/containers/" + c.ID + "/config.v2.json"))
	case Containerd:
		found = window.Labels{Container: c.ID, Namespace: c.Namespace}
	default: // Kubernetes' containers, with either runtime
		for _, file := range []string{
			"/run/containerd/io.containerd.runtime.v2.task/" + KubeletNamespace + "/" + c.ID + "/config.json",
			"/run/containers/storage/overlay-containers/" + c.ID + "/userdata/config.json",
		} {
			if labels, err := parsePodLabels(read(file)); err == nil && labels != (window.Labels{}) {
				return labels
			}
		}
	}
	return found
}

// unitOf is the unit of systemd that a cgroup is in: the last part of its path that names
// one. A unit with Delegate= has cgroups of its own below.
func unitOf(id string) string {
	for at := id; at != "/" && at != "."; at = path.Dir(at) {
		switch name := path.Base(at); path.Ext(name) {
		case ".service", ".scope", ".slice", ".socket", ".mount", ".swap":
			return name
		}
	}
	return ""
}

// plainName may be a part of a path: ids are letters, digits, and a few marks.
func plainName(s string) bool {
	if s == "" || s[0] == '.' || len(s) > 255 {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// parsePodLabels reads the annotations of an OCI bundle's config.json:
//
//	{"annotations": {"io.kubernetes.cri.sandbox-name": "cart-0", …}}
func parsePodLabels(data []byte) (window.Labels, error) {
	var bundle struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(data, &bundle); err != nil {
		return window.Labels{}, fmt.Errorf("parse container's configuration: %w", err)
	}
	for _, names := range podAnnotations {
		if pod := bundle.Annotations[names.pod]; pod != "" {
			return window.Labels{Container: bundle.Annotations[names.container], Pod: pod, Namespace: bundle.Annotations[names.namespace]}, nil
		}
	}
	return window.Labels{}, nil
}

// parseDockerLabels reads Docker's own record of a container; the kubelet's containers
// with Docker below them have their names as labels there.
//
//	{"Name": "/web", "Config": {"Labels": {"io.kubernetes.pod.name": "cart-0", …}}}
func parseDockerLabels(data []byte) (window.Labels, error) {
	var kept struct {
		Name   string
		Config struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		return window.Labels{}, fmt.Errorf("parse container's configuration: %w", err)
	}
	named := kept.Config.Labels
	if pod := named["io.kubernetes.pod.name"]; pod != "" {
		return window.Labels{Container: named["io.kubernetes.container.name"], Pod: pod, Namespace: named["io.kubernetes.pod.namespace"]}, nil
	}
	return window.Labels{Container: strings.TrimPrefix(kept.Name, "/")}, nil
}
