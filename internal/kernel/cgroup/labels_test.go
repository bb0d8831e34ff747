// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/window"
)

// What each manager keeps in its files becomes labels; what cannot be read is unknown.
func TestLabelsOf(t *testing.T) {
	id := strings.Repeat("9f86d081", 8)
	other := strings.Repeat("0000cafe", 8)
	layout := Layout{Root: kerneltest.Tree(t, kerneltest.Files{
		"/var/lib/docker/containers/" + id + "/config.v2.json":                                             `{"Name":"/web","Config":{"Labels":{}}}`,
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + id + "/config.json":                      `{"annotations":{"io.kubernetes.cri.container-name":"app","io.kubernetes.cri.sandbox-name":"cart-0","io.kubernetes.cri.sandbox-namespace":"shop"}}`,
		"/run/containers/storage/overlay-containers/" + other + "/userdata/config.json":                    `{"annotations":{"io.kubernetes.container.name":"db","io.kubernetes.pod.name":"cart-1","io.kubernetes.pod.namespace":"shop"}}`,
		"/run/containerd/io.containerd.runtime.v2.task/k8s.io/" + strings.Repeat("b", 64) + "/config.json": `{"annotations":`,
	})}
	for path, want := range map[string]window.Labels{
		"/system.slice/nginx.service":           {Unit: "nginx.service"},
		"/system.slice/nginx.service/worker":    {Unit: "nginx.service"},
		"/system.slice/docker-" + id + ".scope": {Container: "web"},
		"/docker/" + id:                         {Container: "web"},
		"/docker/" + other:                      {},
		"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope": {Container: "app", Pod: "cart-0", Namespace: "shop"},
		"/kubepods/burstable/pod1/" + id:                                      {Container: "app", Pod: "cart-0", Namespace: "shop"},
		"/kubepods/burstable/pod1":                                            {},
		"/kubepods.slice/kubepods-pod2.slice/crio-" + other + ".scope":        {Container: "db", Pod: "cart-1", Namespace: "shop"},
		"/kubepods/pod1/" + strings.Repeat("b", 64):                           {},
		"/kubepods/pod1/..x/..":                                               {},
		"/demo/a":                                                             {},
	} {
		var buf unix.Buffer
		if got := layout.LabelsOf(path, &buf); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

func TestLabelsAsText(t *testing.T) {
	for want, l := range map[string]window.Labels{
		"shop/cart-0/app": {Container: "app", Pod: "cart-0", Namespace: "shop"},
		"nginx.service":   {Unit: "nginx.service"}, "web": {Unit: "docker-1.scope", Container: "web"}, "": {},
	} {
		if got := l.String(); got != want {
			t.Errorf("%+v is %q, want %q", l, got, want)
		}
	}
}

func FuzzParseLabels(f *testing.F) {
	f.Add([]byte(`{"annotations":{"io.kubernetes.cri.sandbox-name":"a"},"Name":"/b","Config":{"Labels":{"x":"y"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (window.Labels, error){parsePodLabels, parseDockerLabels} {
			if l, err := parse(data); err != nil && l != (window.Labels{}) {
				t.Errorf("%q: %+v beside %v", data, l, err)
			}
		}
	})
}
