// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
)

// answers are hostile ones of Docker's API.
func answers() map[string]http.HandlerFunc {
	body := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
	}
	all := map[string]http.HandlerFunc{
		"another container":         body(`{"Id":"` + strings.Repeat("f", 64) + `","State":{"Pid":70}}`),
		"process 1":                 body(`{"Id":"` + id + `","State":{"Pid":1},"HostConfig":{}}`),
		"a negative process":        body(`{"Id":"` + id + `","State":{"Pid":-70},"HostConfig":{}}`),
		"a process beyond 64 bits":  body(`{"Id":"` + id + `","State":{"Pid":1e99},"HostConfig":{}}`),
		"a hundred thousand levels": body(strings.Repeat(`[`, 100000)),
		"a number of 1 MiB":         body(`{"Id":` + strings.Repeat("9", 1<<20) + `}`),
	}
	maps.Copy(all, ownertest.HostileAnswers)
	return all
}

// saysNothing are answers that an update may have: its text is not read.
var saysNothing = []string{"nothing", "null", "another container", "process 1", "a negative process", "a process beyond 64 bits", "a hundred thousand levels", "a number of 1 MiB"}

// A Docker that is slow, silent or endless, or lies, is survived at each of its calls: no
// step counts as done, it ends and takes little memory; and whatever Docker did meanwhile is
// put back once it answers.
func TestHostileDocker(t *testing.T) {
	for name, answer := range answers() {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, does := range []bool{false, true} {
				if method == http.MethodGet && does || method == http.MethodPost && strings.Contains(strings.Join(saysNothing, "|"), name) {
					continue
				}
				t.Run(name+"/"+method+"/does it: "+strconv.FormatBool(does), func(t *testing.T) { besideHostile(t, method, does, answer) })
			}
		}
	}
}

func besideHostile(t *testing.T, method string, does bool, answer http.HandlerFunc) {
	f := newFake(t)
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/1/cgroup": "0::/\n"})
	o, j := f.owner(filepath.Join(t.TempDir(), "docker.json")), open(t, t.TempDir())
	served := 0
	f.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || r.URL.Path == "/version" {
			return false
		}
		if served++; does {
			f.update(discarded{http.Header{}}, r)
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client is gone
		answer(w, r)
		return true
	}
	ownertest.Beside(t, o.client.Client, j, o, setCPUs)
	f.server.Close() // its answers have ended
	if f.answer = nil; served == 0 {
		t.Error("it was not asked: nothing was tried")
	}
	f.listen()
	if got, err := j.Restore(ctx, o); err != nil || f.file("cpuset.cpus") == "2-3" || f.cpus == "2-3" || len(j.Outstanding()) != 0 {
		t.Errorf("left %q and %q, on record %v; %v, %v", f.file("cpuset.cpus"), f.cpus, j.Outstanding(), got, err)
	}
}

// discarded is where an answer goes that is not sent.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// Connections on which no HTTP/1 is spoken, or without end.
func TestHostileConnections(t *testing.T) {
	for name, do := range ownertest.HostileConns {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.server.Close()
			end := ownertest.ServeHostile(t, f.socket, do)
			o, j := f.owner(filepath.Join(t.TempDir(), "docker.json")), open(t, t.TempDir())
			ownertest.Beside(t, o.client.Client, j, o, setCPUs)
			if end(); len(j.Outstanding()) != 0 {
				t.Errorf("on record: %v", j.Outstanding())
			}
			f.listen()
			ownertest.Must(t, j, o, setCPUs)
		})
	}
}
