// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner/ownertest"
	"homenode/internal/set"
)

const (
	top  = "/sys/fs/cgroup"
	id   = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f809"
	at   = "/system.slice/docker-" + id + ".scope"
	rest = " 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
	boot = "6f0c1f9e-0000-4000-8000-000000000001"
)

// fakeDocker answers the three calls that homenode uses, over a unix socket, for one
// container. Its cgroup is at in a fake tree; updates end up there.
type fakeDocker struct {
	t      *testing.T
	root   unix.Root
	socket string
	server *httptest.Server

	cpus, mems string // HostConfig
	pid        int
	gone       bool
	version    string // the answer to GET /version
	answer     func(w http.ResponseWriter, r *http.Request) bool
	asked      []string
}

func newFake(t *testing.T) *fakeDocker {
	t.Helper()
	f := &fakeDocker{t: t, pid: 70, version: `{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12"}`}
	f.root = kerneltest.Tree(t, kerneltest.Files{
		"/proc/self/mountinfo":                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		"/proc/sys/kernel/random/boot_id":     boot + "\n",
		top + "/cgroup.controllers":           "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective":        "0-7\n",
		top + "/cpuset.mems.effective":        "0-1\n",
		top + at + "/cpuset.cpus":             "\n",
		top + at + "/cpuset.mems":             "\n",
		top + at + "/cgroup.procs":            "70\n",
		top + at + "/init.scope/cpuset.cpus":  "\n",
		top + at + "/init.scope/cgroup.procs": "70\n",
		"/proc/70/stat":                       "70 (systemd) S 69" + rest,
		"/proc/69/stat":                       "69 (containerd-shim) S 1" + rest,
		"/proc/69/status":                     "Uid:\t0\t0\t0\t0\n",
		"/proc/69/cmdline":                    "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00moby\x00-id\x00" + id + "\x00",
		"/proc/70/cgroup":                     "0::" + at + "/init.scope\n",
	})
	dir, err := os.MkdirTemp("", "docker") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	f.socket = filepath.Join(dir, "s")
	f.listen()
	t.Cleanup(func() { f.server.Close(); os.RemoveAll(dir) })
	return f
}

func (f *fakeDocker) listen() {
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server = httptest.NewUnstartedServer(f)
	f.server.Listener.Close()
	f.server.Listener = l
	f.server.Start()
}

func (f *fakeDocker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.answer != nil && f.answer(w, r) {
		return
	}
	_, call, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, f.version)
	case f.gone || !strings.HasPrefix(call, "containers/"+id+"/"):
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"message":"No such container: %s"}`, path.Base(path.Dir(call)))
	case r.Method == http.MethodGet:
		fmt.Fprintf(w, `{"Id":%q,"Name":"/web","State":{"Status":"running","Pid":%d},"HostConfig":{"CpusetCpus":%q,"CpusetMems":%q,"NanoCpus":0}}`, id, f.pid, f.cpus, f.mems)
	default:
		f.update(w, r)
	}
}

// update is daemon/update.go and container/container_unix.go: an empty set is no change.
func (f *fakeDocker) update(w http.ResponseWriter, r *http.Request) {
	var u struct{ CpusetCpus, CpusetMems string }
	if err := json.NewDecoder(r.Body).Decode(&u); err != nil || r.Header.Get("Content-Type") != "application/json" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if c, err := set.ParseCPUs(u.CpusetCpus); err == nil && !c.SubsetOf(set.FromCPUs(0, 1, 2, 3, 4, 5, 6, 7)) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"message":"Requested CPUs are not available - requested %s, available: 0-7"}`, u.CpusetCpus)
		return
	}
	for _, v := range []struct {
		kept  *string
		value string
		file  string
	}{{&f.cpus, u.CpusetCpus, cgroup.CPUsFile}, {&f.mems, u.CpusetMems, cgroup.MemsFile}} {
		if v.value != "" {
			*v.kept = v.value
			if f.pid != 0 {
				kerneltest.Write(f.t, f.root, kerneltest.Files{top + at + "/" + v.file: v.value + "\n"})
			}
		}
	}
	fmt.Fprint(w, `{"Warnings":null}`)
}

// owner is that of a new homenode; memory is a file.
func (f *fakeDocker) owner(memory string) *Owner {
	f.t.Helper()
	o, err := newOwner(f.root, Config{Socket: f.socket, Memory: memory, Cgroups: ownertest.NewCgroups(f.t, f.root, &f.asked)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(o.client.HTTP.CloseIdleConnections)
	return o
}

func (f *fakeDocker) file(name string) string {
	data, err := os.ReadFile(f.root.Path(top + at + "/" + name))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
