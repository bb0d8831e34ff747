// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner/ownertest"
)

const (
	top  = "/sys/fs/cgroup"
	at   = "/default/own"
	rest = " 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"
)

// fakeTasks is a server of containerd's Tasks, for the container "own" in the namespace
// "default", over HTTP/2 on a unix socket. It expects and answers exactly the bytes that
// containerd's own library makes (checked by TestWire).
type fakeTasks struct {
	t      *testing.T
	root   unix.Root
	socket string
	server *http.Server
	done   chan struct{}

	status int                                                               // of the task; 2: it runs
	fail   func(method string) (code, string)                                // what Update answers instead
	after  func()                                                            // after an update was done
	answer func(w http.ResponseWriter, r *http.Request, message string) bool // instead of all that
	asked  []string
}

func shim(pid int, namespace, id string) kerneltest.Files {
	return kerneltest.Files{
		fmt.Sprintf("/proc/%d/stat", pid):    fmt.Sprintf("%d (containerd-shim) S 1%s", pid, rest),
		fmt.Sprintf("/proc/%d/status", pid):  "Uid:\t0\t0\t0\t0\n",
		fmt.Sprintf("/proc/%d/cmdline", pid): "/usr/bin/containerd-shim-runc-v2\x00-namespace\x00" + namespace + "\x00-id\x00" + id + "\x00-address\x00/x\x00",
		fmt.Sprintf("/proc/%d/stat", pid+1):  fmt.Sprintf("%d (load) S %d%s", pid+1, pid, rest),
	}
}

func newFake(t *testing.T) *fakeTasks {
	t.Helper()
	f := &fakeTasks{t: t, status: 2}
	files := shim(69, "default", "own")
	for name, text := range map[string]string{
		"/proc/self/mountinfo":         "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers":    "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective": "0-7\n",
		top + "/cpuset.mems.effective": "0-1\n",
		top + at + "/cpuset.cpus":      "\n",
		top + at + "/cpuset.mems":      "\n",
		top + at + "/cgroup.procs":     "70\n",
		"/proc/70/cgroup":              "0::" + at + "\n",
	} {
		files[name] = text
	}
	f.root = kerneltest.Tree(t, files)
	dir, err := os.MkdirTemp("", "ctrd") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	f.socket = filepath.Join(dir, "s")
	f.listen()
	t.Cleanup(func() { f.close(); os.RemoveAll(dir) })
	return f
}

func (f *fakeTasks) listen() {
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	f.server = &http.Server{Handler: f, Protocols: new(http.Protocols)}
	f.server.Protocols.SetUnencryptedHTTP2(true)
	f.done = make(chan struct{})
	go func() { defer close(f.done); _ = f.server.Serve(l) }()
}

func (f *fakeTasks) close() {
	f.server.Close()
	<-f.done
}

func (f *fakeTasks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil || r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" || len(data) < 5 {
		f.t.Errorf("no gRPC: %v, %v", err, r.Header)
	}
	w.Header().Set("Content-Type", "application/grpc")
	f.asked = append(f.asked, path.Base(r.URL.Path))
	if f.answer != nil && len(data) >= 5 && f.answer(w, r, string(data[5:])) {
		return
	}
	c, text, answer := f.do(path.Base(r.URL.Path), r.Header.Get("Containerd-Namespace"), string(data[5:]))
	if c != codeOK { // trailers only
		w.Header().Set("Grpc-Status", fmt.Sprint(int(c)))
		w.Header().Set("Grpc-Message", url.PathEscape(text))
		return
	}
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(frame(answer))
	w.Header().Set("Grpc-Status", "0")
}

func (f *fakeTasks) do(method, namespace, message string) (code, string, []byte) {
	if f.fail != nil {
		if c, text := f.fail(method); c != codeOK {
			return c, text, nil
		}
	}
	if namespace != "default" || !strings.HasPrefix(message, "\n\x03own") {
		return codeNotFound, "container not found: 100%", nil
	}
	if method == "Get" {
		p := protowire.AppendTag([]byte("\n\x03own\x12\x03own"), 3, protowire.VarintType)
		p = protowire.AppendVarint(p, 70)
		p = protowire.AppendVarint(protowire.AppendTag(p, 4, protowire.VarintType), uint64(f.status))
		return codeOK, "", protowire.AppendBytes([]byte("\n"), append(p, "*\x06/run/x@\x01"...))
	}
	var res struct{ CPU struct{ CPUs, Mems string } }
	if err := json.Unmarshal([]byte(message[strings.Index(message, "{"):]), &res); err != nil {
		return codeInvalidArgument, err.Error(), nil
	}
	for file, value := range map[string]string{"cpuset.cpus": res.CPU.CPUs, "cpuset.mems": res.CPU.Mems} {
		if value != "" { // runc: empty is no change
			kerneltest.Write(f.t, f.root, kerneltest.Files{top + at + "/" + file: value + "\n"})
		}
	}
	if f.after != nil {
		f.after()
	}
	return codeOK, "", nil
}

// owner is that of a new homenode.
func (f *fakeTasks) owner() *Owner {
	f.t.Helper()
	o, err := newOwner(f.root, Config{Socket: f.socket, Cgroups: ownertest.NewCgroups(f.t, f.root, &f.asked)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(o.client.HTTP.CloseIdleConnections)
	return o
}

func (f *fakeTasks) file(name string) string {
	data, err := os.ReadFile(f.root.Path(top + at + "/" + name))
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}
