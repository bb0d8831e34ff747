// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/set"
)

// never is an owner that must not be asked: its embedded one is nil.
type never struct{ journal.Owner }

func (never) Names(journal.Setting) bool { return false }

// Nothing is ever planned, written or moved for what the kubelet owns, whatever other
// manager has a part in it: paths of both cgroup drivers, of containerd, CRI-O and Docker
// beneath it, of kind, and one that only the shim tells. The same holds for CRI-O's own
// cgroups, and podman's.
func TestKubeletIsLeftAlone(t *testing.T) {
	const id = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	const stat = "20 (containerd-shim) S 1 20 20 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
	files := kerneltest.Files{
		"/proc/self/mountinfo":              "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n",
		"/proc/20/stat":                     stat,
		"/proc/20/status":                   "Uid:\t0\t0\t0\t0\n",
		"/proc/20/cmdline":                  "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00k8s.io\x00-id\x00" + id + "\x00",
	}
	owned := map[string]string{
		"/kubepods.slice": "kubelet",
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f3c.slice/cri-containerd-" + id + ".scope": "kubelet",
		"/kubepods.slice/kubepods-pod1f3c.slice/crio-" + id + ".scope":                                              "kubelet",
		"/kubepods.slice/kubepods-pod1f3c.slice/docker-" + id + ".scope":                                            "kubelet",
		"/kubepods/burstable/pod1f3c/" + id:                                                                         "kubelet",
		"/kubepods/pod1f3c/crio-" + id:                                                                              "kubelet",
		"/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1f3c.slice/cri-containerd-" + id + ".scope":      "kubelet",
		"/docker/" + id + "/kubelet/kubepods/besteffort/pod1f3c/" + id:                                              "kubelet",
		"/by/shim/only": "kubelet", "/system.slice/crio-" + id + ".scope": "crio", "/machine.slice/libpod-" + id + ".scope": "podman",
	}
	for path := range owned {
		files["/sys/fs/cgroup"+path+"/cgroup.procs"] = "20\n"
	}
	r, err := newRouter(kerneltest.Tree(t, files), RouterConfig{Cgroups: never{}, Managers: map[string]Manager{
		cgroup.Systemd: never{}, cgroup.Docker: never{}, cgroup.Containerd: never{},
	}})
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	defer j.Close()
	for path, owner := range owned {
		for _, step := range []action.Step{
			{Kind: action.SetCPUs, CPUs: set.FromCPUs(1)}, {Kind: action.SetMems, Nodes: set.FromNodes(1)}, {Kind: action.MovePages, Nodes: set.FromNodes(1), Budget: 1},
		} {
			step.Workload = path
			out := j.Wrap(r).Apply(ctx, step)
			if out.Status != action.Refused || !strings.Contains(out.Detail, "owned by "+owner) || !strings.Contains(out.Detail, "left alone") {
				t.Errorf("%s %s: %s: %s", step.Kind, path, out.Status, out.Detail)
			}
		}
	}
	if len(j.Outstanding()) != 0 {
		t.Errorf("on record: %v", j.Outstanding())
	}
}
