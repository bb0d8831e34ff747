// SPDX-License-Identifier: Apache-2.0

package containerd

import (
	"maps"
	"net/http"
	"path"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner/ownertest"
)

// answers are hostile ones of gRPC: wrong lengths, wrong results, and processes that are
// none of the container's.
func answers() map[string]http.HandlerFunc {
	body := func(data, status string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte(data))
			w.Header().Set("Grpc-Status", status)
		}
	}
	task := func(pid uint64) string {
		p := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), pid)
		p = append(p, " \x02"...)
		return string(frame(protowire.AppendBytes([]byte("\n"), p)))
	}
	all := map[string]http.HandlerFunc{
		"a length of 4 GiB":            body("\x00\xff\xff\xff\xff\n\x03own", "0"),
		"a length that is too short":   body("\x00\x00\x00\x00\x01\n\x03own", "0"),
		"a compressed message":         body("\x01\x00\x00\x00\x00", "0"),
		"half a length":                body("\x00\x00", "0"),
		"two messages":                 body("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "0"),
		"a field of 1 EiB":             body(string(frame([]byte("\n\xff\xff\xff\xff\xff\xff\xff\xff\x0f"))), "0"),
		"no result":                    body(task(70), ""),
		"a result that is no number":   body(task(70), "fine"),
		"a result beyond all numbers":  body(task(70), strings.Repeat("9", 1000)),
		"a negative result":            body(task(70), "-1"),
		"process 0":                    body(task(0), "0"),
		"process 1, of another cgroup": body(task(1), "0"),
		"a process that is none":       body(task(1<<31), "0"),
		"a process beyond 32 bits":     body(task(1<<63), "0"),
	}
	maps.Copy(all, ownertest.HostileAnswers)
	return all
}

// A containerd that is slow, silent or endless, or lies, is survived at each of its calls:
// no step counts as done, it ends and takes little memory; and whatever containerd did
// meanwhile is put back once it answers.
func TestHostileContainerd(t *testing.T) {
	for name, answer := range answers() {
		for _, method := range []string{"Get", "Update"} {
			for _, does := range []bool{false, true} {
				if method == "Get" && does || method == "Update" && (strings.Contains(name, "process ") || name == "a field of 1 EiB") {
					continue // Get does nothing; an answer to Update has no content
				}
				t.Run(name+"/"+method+"/does it: "+strconv.FormatBool(does), func(t *testing.T) { besideHostile(t, method, does, answer) })
			}
		}
	}
}

func besideHostile(t *testing.T, method string, does bool, answer http.HandlerFunc) {
	f := newFake(t)
	kerneltest.Write(t, f.root, kerneltest.Files{"/proc/1/cgroup": "0::/\n"})
	o, j := f.owner(), open(t, t.TempDir())
	served := 0
	f.answer = func(w http.ResponseWriter, r *http.Request, message string) bool {
		if path.Base(r.URL.Path) != method {
			return false
		}
		if served++; does {
			f.do(method, "default", message)
		}
		answer(w, r)
		return true
	}
	ownertest.Beside(t, o.client.Client, j, o, setCPUs)
	f.close() // its answers have ended
	if f.answer = nil; served == 0 {
		t.Error("it was not asked: nothing was tried")
	}
	f.listen()
	if got, err := j.Restore(ctx, f.owner()); err != nil || f.file("cpuset.cpus") == "2-3" || len(j.Outstanding()) != 0 {
		t.Errorf("left %q, on record %v; %v, %v", f.file("cpuset.cpus"), j.Outstanding(), got, err)
	}
}

// Connections on which no gRPC is spoken, or without end.
func TestHostileConnections(t *testing.T) {
	for name, do := range ownertest.HostileConns {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.close()
			end := ownertest.ServeHostile(t, f.socket, do)
			o, j := f.owner(), open(t, t.TempDir())
			ownertest.Beside(t, o.client.Client, j, o, setCPUs)
			if end(); len(j.Outstanding()) != 0 {
				t.Errorf("on record: %v", j.Outstanding())
			}
			f.listen()
			ownertest.Must(t, j, o, setCPUs)
		})
	}
}
